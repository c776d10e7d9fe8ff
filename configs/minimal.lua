-- The least there is: one store, and no routes. Every view and input of its module is served:
--   curl -X POST http://127.0.0.1:8767/inputs/take
--   curl http://127.0.0.1:8767/views/left
settings { listen = "127.0.0.1:8767" }

stores {
  tokens = { module = "modules/tokens.aup", path = "data/tokens" },
}
