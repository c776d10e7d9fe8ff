-- Short links: the module counts the click, a route turns its answer into a redirect.
--   curl -d https://example.org/ http://127.0.0.1:8767/inputs/shorten      # 1001
--   curl -i http://127.0.0.1:8767/s/1001                                   # 302, Location: https://example.org/
settings { listen = "127.0.0.1:8767" }

stores {
  links = { module = "modules/links.aup", path = "data/links" },
}

routes {
  map = {
    -- A click is an event: the redirect leaves when the count is stored.
    ["/s/:code"] = route_lua {
      methods = { "GET" }, children = { links = "links" },
      f = function(rctx, h)
        return function(r)
          local code = r:param("code")
          if r:method() == "HEAD" then                 -- who only looks is not counted
            local target = rctx:view_and_wait(h.links, "target", { code = code })
            if target:status() ~= 200 then return target end
            return 302, "", { Location = target:body() }
          end
          local clicked = rctx:post_and_wait(h.links, "click", { code = code })
          if clicked:status() ~= 200 then return clicked end
          return 302, "", { Location = clicked:body() }
        end
      end,
    },
  },
  default = route_stores {},
}
