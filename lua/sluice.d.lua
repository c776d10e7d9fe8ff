---@meta
-- What a Sluice config can call, for editors (LuaLS): put this file where your editor finds libraries. It is never run.
-- t/50-docs.t compares it with the binary. The reference is lua/README.md.

---@alias Method "GET"|"HEAD"|"POST"|"PUT"|"DELETE"|"OPTIONS"|"PATCH"|"TRACE"
---@alias Size integer|string bytes, or "64MiB"
---@alias Child string|Handler|table|fun(r: Request): any the name of a store or pool, a handler, a function, or, in `children`, several
---@alias Children string|Handler|table the name of a set, one child, or a list of children, lists and sets
---@alias Fields table<string, string|number|boolean>
---@alias Class integer RES_ANY, RES_OK or RES_GOOD
---@class Handler
---@class Handle: integer

-- Declarations

-- A listener: "HOST:PORT", or { "HOST:PORT", tag = "NAME", tls = Tls }.
---@class Tls
---@field cert string
---@field key string
---@field client_ca? string
---@field verify? "none"|"optional"|"required"
---@field min_version? "1.2"|"1.3"
---@field ciphers? string
---@field names? table<string, { cert: string, key: string }>

---@param t { listen: string|table, host: string, port: integer, workers: integer, connections: integer, active_req_limit: integer, payload_budget: Size, head_limit: Size, header_count: integer, target_limit: Size, body_limit: Size, requests_per_connection: integer, pipeline: integer, head_timeout: number, body_timeout: number, body_rate: Size, drain_timeout: number, drain_rate: Size, idle_timeout: number, request_timeout: number, lua_memory: Size, lua_time_limit: number, lua_jit: boolean, lua_sandbox: boolean, backend_connections: integer, backend_connect_timeout: number, backend_read_timeout: number, backend_idle_timeout: number, backend_failure_limit: integer, backend_retry_waittime: number, backend_flap_time: number, backend_flap_backoff_ramp: number, backend_flap_backoff_max: number, backend_depth_limit: integer, backend_head_limit: Size, backend_body_limit: Size, backend_tcp_keepalive: boolean, log_level: "debug"|"info"|"warn"|"error"|"off", control: string|false }
function settings(t) end
---@param t table<string, { module: string, path: string, shards: integer?, fuel: integer?, quota: Size?, map: Size? }>
function stores(t) end
---@class BackendOptions
---@field connections integer?
---@field connect_timeout number?
---@field read_timeout number?
---@field idle_timeout number?
---@field failure_limit integer?
---@field retry_waittime number?
---@field flap_time number?
---@field flap_backoff_ramp number?
---@field flap_backoff_max number?
---@field depth_limit integer?
---@field head_limit Size?
---@field body_limit Size?
---@field tcp_keepalive boolean?
---@class Backend: BackendOptions
---@field [1] string?
---@field address string?
---@field host string?
---@field port integer?
---@field label string?
---@field name string?
---@field weight integer?
---@field host_header string?
---@field down boolean?
---@class PoolOptions
---@field dist ("jump"|"ring")?
---@field hash "xxh3"?
---@field seed integer?
---@field filter ("stop"|"tags")?
---@field filter_conf string?
---@field beprefix string?
---@param t table<string, { stores: string[]?, backends: (string|Backend)[]?, backend_options: BackendOptions?, options: PoolOptions?, seed: integer? }|string[]|table<string, string[]>>
function pools(t) end
---@param t table<string, Size>
function shared(t) end
---@param t table<string, { options: table<string, string>?, f: (fun(rctx: Rctx, h: table<string, Handle>, args: table): fun(r: Request): any), check: (fun(args: table): string?)? }>
function handlers(t) end
---@param t table<string, "counter"|"histogram">
function stats(t) end
---@param t { map: table<string, Child|function>?, cmap: table<Method, Child|function>?, default: (Child|function)?, tag: string?, host: string?, mode: ("path"|"prefix"|"anchor")?, start: string?, stop: string?, of: ("path"|"key")? }
function routes(t) end
---@param name string
function local_zone(name) end
---@param variable string
function local_zone_from_env(variable) end
---@param file string
function local_zone_from_file(file) end

-- Handlers

---@param t table<Method|"all", Child|function>
---@return Handler
function cmdmap(t) end
---@param t { child: Child }
---@return Handler
function route_direct(t) end
---@param t { map: table<string, Child>?, cmap: table<Method, Child>?, default: Child?, mode: ("path"|"prefix"|"anchor")?, start: string?, stop: string?, of: ("path"|"key")? }
---@return Handler
function route_map(t) end
---@param t { child: Child, ttl: number?, bytes: Size?, item: Size?, vary: string[]?, revalidate: boolean?, everybody: boolean?, name: string? }
---@return Handler
function route_cache(t) end
---@param t { child: Child, field: string?, ttl: integer?, min: integer?, max: integer?, default: integer?, inputs: string[]? }
---@return Handler
function route_ttl(t) end
---@param t {}
---@return Handler
function route_null(t) end
---@param t {}
---@return Handler
function route_stores(t) end
---@param t { children: Children, failover_count: integer?, miss: boolean?, wait: number?, shuffle: boolean?, local_zone: string? }
---@return Handler
function route_failover(t) end
---@param t { children: Children }
---@return Handler
function route_allsync(t) end
---@param t { children: Children }
---@return Handler
function route_allasync(t) end
---@param t { children: Children, miss: boolean?, wait: number? }
---@return Handler
function route_allfastest(t) end
---@param t { children: Children, delay: number, unsafe: boolean? }
---@return Handler
function route_hedge(t) end
---@param t { child_a: Child, child_b: Child }
---@return Handler
function route_split(t) end
---@param t { child: Child, shadow: Child, percent: number? }
---@return Handler
function route_shadow(t) end
---@param t { children: Children }
---@return Handler
function route_random(t) end
---@param t { children: Children, weights: number[] }
---@return Handler
function route_weighted(t) end
---@param t { child: Child, otherwise: Child, header: string?, query: string?, body: string?, json: string?, is: (string|number|boolean)?, token: string?, f: (fun(r: Request): any)? }
---@return Handler
function route_match(t) end
---@param t { body: string?, file: string?, status: integer?, type: string?, headers: table? }
---@return Handler
function route_static(t) end
---@param t { to: string, status: integer?, keep: boolean? }
---@return Handler
function route_redirect(t) end
---@param t { child: Child, tokens: string[]?, users: table<string, string>?, realm: string?, tls_names: string[]? }
---@return Handler
function route_auth(t) end
---@param t { child: Child, origins: string[], methods: Method[]?, headers: string[]?, expose: string[]?, max_age: number?, credentials: boolean? }
---@return Handler
function route_cors(t) end
---@param t { child: Child, limit: integer, rate: number?, fillrate: number?, tickrate: number?, key: (string|fun(r: Request): string?)?, keys: integer?, global: boolean?, name: string? }
---@return Handler
function route_ratelim(t) end
---@param t { format: ("json"|"prometheus")? }
---@return Handler
function route_stats(t) end
---@param t { f: fun(rctx: Rctx, h: table<any, Handle>): fun(r: Request): any, children: Children?, methods: Method[]? }
---@return Handler
function route_lua(t) end

-- The request context

---@class Rctx
local Rctx = {}
---@param req Request
---@param h Handle|Handle[]
function Rctx:enqueue(req, h) end
---@param req Request
---@param h Handle
---@param t number? seconds
---@return Response? result
---@return boolean? late
function Rctx:enqueue_and_wait(req, h, t) end
---@param n integer
---@param mode integer? WAIT_ANY, WAIT_OK, WAIT_GOOD or WAIT_FASTGOOD
---@param t number?
---@return integer counted
---@return boolean? late
function Rctx:wait_cond(n, mode, t) end
---@param h Handle
---@param t number?
---@return Response? result
---@return boolean? late
function Rctx:wait_handle(h, t) end
---@param s number
---@return true
function Rctx:sleep(s) end
---@param h Handle
---@return Response?
function Rctx:res_good(h) end
---@param h Handle
---@return Response?
function Rctx:res_ok(h) end
---@param h Handle
---@return Response?
function Rctx:res_any(h) end
---@param h Handle
---@return Response?
---@return Class?
function Rctx:result(h) end
---@param hs Handle[]
---@return Response?
---@return Class?
function Rctx:best_result(hs) end
---@param hs Handle[]
---@return Response?
---@return Class?
function Rctx:worst_result(hs) end
---@param h Handle
---@param f (fun(res: Response, req: Request): Class?, integer?)|nil
function Rctx:handle_set_cb(h, f) end
---@param h Handle
---@param input string
---@return Request
function Rctx:event(h, input) end
---@param method Method?
---@param path string?
---@return Request
function Rctx:request_new(method, path) end
---@return Response
function Rctx:response_new() end
---@param s number
function Rctx:deadline(s) end
---@return boolean
function Rctx:cancelled() end
---@return integer?
function Rctx:cfd() end
---@return string?
function Rctx:client_ip() end
---@return string? cn of the client's certificate, verified
function Rctx:tls_peer_cn() end
---@param h Handle
---@param key string
function Rctx:get(h, key) end
---@param h Handle
---@param key string
---@param t number?
---@return Response?
---@return boolean?
function Rctx:get_and_wait(h, key, t) end
---@param h Handle
---@param key string
---@param body string
---@param revision integer? none: it must not exist
function Rctx:put(h, key, body, revision) end
---@param h Handle
---@param key string
---@param body string
---@param revision integer?
---@param t number?
---@return Response?
---@return boolean?
function Rctx:put_and_wait(h, key, body, revision, t) end
---@param h Handle
---@param key string
---@param revision integer
function Rctx:delete(h, key, revision) end
---@param h Handle
---@param key string
---@param revision integer
---@param t number?
---@return Response?
---@return boolean?
function Rctx:delete_and_wait(h, key, revision, t) end
---@param h Handle
---@param name string
---@param fields Fields?
function Rctx:view(h, name, fields) end
---@param h Handle
---@param name string
---@param fields Fields?
---@param t number?
---@return Response?
---@return boolean?
function Rctx:view_and_wait(h, name, fields, t) end
---@param h Handle
---@param input string
---@param fields Fields?
---@param body string?
function Rctx:post(h, input, fields, body) end
---@param h Handle
---@param input string
---@param fields Fields?
---@param body string?
---@param t number?
---@return Response?
---@return boolean?
function Rctx:post_and_wait(h, input, fields, body, t) end

-- Requests and responses

---@class Request
local Request = {}
---@return string
function Request:method() end
---@return string
function Request:path() end
---@return string
function Request:full_path() end
---@return string
function Request:target() end
---@param which string|integer
---@return string?
function Request:param(which) end
---@param name string
---@return string?
function Request:query(name) end
---@param name string
---@return string?
function Request:header(name) end
---@return table<string, string>
function Request:headers() end
---@param text string? of an owned one: sets it
---@return string|Request
function Request:body(text) end
---@return string
function Request:key() end
---@return string
function Request:tag() end
---@return string
function Request:client_ip() end
---@return string
function Request:http_version() end
---@param name string
---@param value string|number|boolean|nil of the query; nil: takes it away
---@return Request
function Request:set(name, value) end
---@param name string
---@param value string|number|boolean|nil
---@return Request
function Request:set_query(name, value) end
---@param method Method
---@return Request
function Request:set_method(method) end
---@param path string
---@return Request
function Request:set_path(path) end
---@param name string
---@param value string|number|nil nil: takes it away
---@return Request
function Request:set_header(name, value) end
---@param text string
---@return Request
function Request:set_body(text) end
---@param key string
---@return Request
function Request:set_key(key) end
---@param n integer
---@return Request
function Request:ltrimpath(n) end

---@class Response
local Response = {}
---@return boolean
function Response:ok() end
---@return boolean
function Response:hit() end
---@return integer
function Response:status() end
---@param name string
---@return string?
function Response:header(name) end
---@param text string? of an owned one: sets it
---@return string|Response
function Response:body(text) end
---@return any
---@return string? why
function Response:json() end
---@return integer
function Response:vlen() end
---@return integer?
function Response:revision() end
---@return string
function Response:error() end
---@return number seconds
function Response:elapsed() end
---@return string?
function Response:backend() end
---@param status integer
---@return Response
function Response:set_status(status) end
---@param name string
---@param value string|number|boolean|(string|number|boolean)[]|nil in place of those of that name; nil: takes them away
---@return Response
function Response:set_header(name, value) end
---@param text string
---@return Response
function Response:set_body(text) end

-- Shared tables

---@class SharedTable
local SharedTable = {}
---@param key string
---@return string|number|boolean|nil
function SharedTable:get(key) end
---@param key string
---@param value string|number|boolean
---@param ttl number? seconds
---@return boolean done
---@return string? why
function SharedTable:set(key, value, ttl) end
---@param key string
---@param value string|number|boolean
---@param ttl number?
---@return boolean done
---@return string? why
function SharedTable:add(key, value, ttl) end
---@param key string
---@param value string|number|boolean
---@param ttl number?
---@return boolean done
---@return string? why
function SharedTable:replace(key, value, ttl) end
---@param key string
---@param by number
---@param initial number?
---@param ttl number?
---@return number? sum
---@return string? why
function SharedTable:incr(key, by, initial, ttl) end
---@param key string
---@return boolean
function SharedTable:delete(key) end
---@param key string
---@return number? seconds 0: for ever
function SharedTable:ttl(key) end
---@param key string
---@param ttl number?
---@return boolean
function SharedTable:expire(key, ttl) end
---@param most integer?
---@return string[]
function SharedTable:keys(most) end
function SharedTable:clear() end
---@return { entries: integer, bytes: integer, limit: integer, hits: integer, misses: integer, evicted: integer }
function SharedTable:stats() end

-- sluice

---@class sluice
---@field shared table<string, SharedTable>
---@field json { encode: fun(v: any): string, decode: fun(text: string): any }
---@field internal any
sluice = {}
sluice.ANY, sluice.RES_ANY, sluice.RES_OK, sluice.RES_GOOD = "ANY", 1, 2, 3
sluice.WAIT_ANY, sluice.WAIT_OK, sluice.WAIT_GOOD, sluice.WAIT_FASTGOOD, sluice.WAIT_RESUME = 1, 2, 3, 4, 5
---@param text string
---@param level ("debug"|"info"|"warn"|"error")?
function sluice.log(text, level) end
---@param request Request
---@param response Response?
---@param detail string?
---@param cfd integer?
function sluice.log_req(request, response, detail, cfd) end
---@param ms number
---@param rate integer
---@param errors boolean
---@param request Request
---@param response Response?
---@param detail string?
---@param cfd integer?
---@return boolean
function sluice.log_reqsample(ms, rate, errors, request, response, detail, cfd) end
---@return integer
function sluice.time_real_millis() end
---@return integer
function sluice.time_mono_millis() end
---@param name string
---@param n number?
function sluice.stat(name, n) end
---@param name string
---@param kind ("counter"|"histogram")?
function sluice.add_stat(name, kind) end
---@param section ("server"|"user"|"caches"|"backends"|"routes")?
---@return table
function sluice.server_stats(section) end
---@class Limiter
---@overload fun(n: integer?): boolean, number?
---@overload fun(key: string, n: integer?): boolean, number?
---@param t { limit: integer, rate: number?, fillrate: number?, tickrate: number?, keys: integer? }
---@return Limiter
function sluice.ratelim_tbf(t) end
---@param t { limit: integer, rate: number?, fillrate: number?, tickrate: number?, keys: integer?, name: string? }
---@return Limiter
function sluice.ratelim_global_tbf(t) end
---@param ... table
---@return fun(r: Request): any
function sluice.req_inspector_new(...) end
---@param ... table
---@return fun(r: Response): any
function sluice.res_inspector_new(...) end
---@param ... table
---@return fun(to: Request, ...): boolean
function sluice.req_mutator_new(...) end
---@param ... table
---@return fun(to: Response, ...): boolean
function sluice.res_mutator_new(...) end
---@param name string
---@param t { every: number, func: fun(missed: integer), rerun: boolean? }
function sluice.register_cron(name, t) end
function sluice.schedule_config_reload() end
---@param store string
---@param input string
---@param fields Fields?
---@param body string?
---@param f fun(status: integer, body: string, error: string)?
---@return boolean
function sluice.post(store, input, fields, body, f) end
---@param store string
---@param name string
---@param fields Fields?
---@param f fun(status: integer, body: string, error: string)?
---@return boolean
function sluice.view(store, name, fields, f) end
---@param store string
---@param key string
---@param f fun(status: integer, body: string, error: string)?
---@return boolean
function sluice.get(store, key, f) end

-- The lower layer

---@class Funcgen
local Funcgen = {}
---@param target any a store, a pool, a generator that is ready, or sluice.internal
---@return Handle
function Funcgen:new_handle(target) end
---@param t { f: fun(rctx: Rctx, a: any): fun(r: Request): any, a: any, n: string?, u: integer? }
---@return Funcgen
function Funcgen:ready(t) end
---@return Funcgen
function sluice.funcgen_new() end
---@param t table<Method|"all", any>
function sluice.methods(t) end
---@param t { map: table?, cmap: table?, default: any, mode: string?, start: string?, stop: string?, of: string? }
function sluice.router_new(t) end
---@param method Method|"ANY"
---@param target any
---@param place (string|{ tag: string?, host: string? })?
function sluice.attach(method, target, place) end
---@param t table
function sluice.settings(t) end
---@param t table
function sluice.store(t) end
---@param t Backend|string
function sluice.backend(t) end
---@class NamedPoolOptions: PoolOptions
---@field name string?
---@param list table of what sluice.store or sluice.backend returned
---@param t NamedPoolOptions?
function sluice.pool(list, t) end
