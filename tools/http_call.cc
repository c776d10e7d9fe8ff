#include "tools/http_call.h"

#include "proxy/http_parser.h"
#include "proxy/http_writer.h"
#include "proxy/module_call.h"
#include "proxy/response.h"

namespace sluice::tools {
namespace {

Answer refused(const proxy::Refusal& why) {
  Answer out;
  out.status = why.status;
  out.name = name(why.code);
  out.body = std::string(why.line) + "\n";
  out.own_words = false;
  return out;
}

}  // namespace

std::string bytes_of(const proxy::Body& body) {
  if (!body.loan) return std::string(body.flat());
  std::string all;
  for (const std::string_view piece : body.pieces) all.append(piece);
  return all;
}

Answer call_over_http(std::string_view method, std::string_view target, const Headers& headers, std::string_view body,
                      const proxy::StorePtr& store, const bool& own_words, const Answering& answering) {
  std::string bytes(method);
  bytes.append(" ").append(target).append(" HTTP/1.1\r\nHost: test\r\n");
  for (const auto& [field, value] : headers) bytes.append(field).append(": ").append(value).append("\r\n");
  if (method == "POST" || method == "PUT" || !body.empty())
    bytes.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  bytes.append("\r\n").append(body);

  proxy::HttpParser parser;
  proxy::RequestSlot slot;
  const proxy::Settings limits;
  parser.begin(slot, limits, nullptr);
  for (std::string_view rest = bytes; !rest.empty() && parser.state() < proxy::HttpParser::State::whole;)
    rest.remove_prefix(parser.feed(rest));
  if (parser.refusal().status != 0) return refused(parser.refusal());
  if (parser.state() != proxy::HttpParser::State::whole)
    return refused({400, Errc::request, "the request is not whole", true});

  const proxy::Request& request = slot.request;
  proxy::Response response;
  proxy::Call call;
  bool asked = false;
  if (proxy::make_call(call, response, store, proxy::module_request(request, request.path))) {
    proxy::Answer answer;
    answering(call, answer);
    proxy::respond(response, answer);
    asked = true;
  }
  const bool head = request.method == proxy::Method::head;
  if (response.status == 200 && response.revision != 0 && (head || request.method == proxy::Method::get) &&
      proxy::none_match_names(request, response.revision)) {
    response.status = 304;
    response.body.reset();
  }
  Answer out;
  out.status = response.status;
  if (response.error != Errc::none) out.name = name(response.error);
  out.revision = response.revision;
  if (!head && response.status != 204) out.body = bytes_of(response.body);
  out.json = response.content_type == proxy::text_of(proxy::ContentType::json);
  out.own_words = response.error == Errc::none || (asked && own_words);
  return out;
}

}  // namespace sluice::tools
