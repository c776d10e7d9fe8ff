#include "proxy/response.h"

namespace sluice::proxy {

void Response::reset() {
  status = 200;
  error = Errc::none;
  content_type = {};
  revision = 0;
  retry_after_s = 0;
  allow = 0;
  no_store = false;
  close = false;
  head_length = kBodyLength;
  backend = {};
  headers.clear();
  body.reset();
}

std::string_view text_of(ContentType type) {
  switch (type) {
    case ContentType::octets: return "application/octet-stream";
    case ContentType::text: return "text/plain; charset=utf-8";
    case ContentType::json: return "application/json";
  }
  return {};
}

std::string_view reason(std::uint16_t status) {
  switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 203: return "Non-Authoritative Information";
    case 204: return "No Content";
    case 205: return "Reset Content";
    case 206: return "Partial Content";
    case 207: return "Multi-Status";
    case 300: return "Multiple Choices";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 402: return "Payment Required";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 417: return "Expectation Failed";
    case 418: return "I'm a teapot";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 423: return "Locked";
    case 424: return "Failed Dependency";
    case 425: return "Too Early";
    case 426: return "Upgrade Required";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 451: return "Unavailable For Legal Reasons";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 507: return "Insufficient Storage";
    default: return "Status";
  }
}

void respond(Response& out, Answer& answer) {
  out.status = answer.status;
  out.error = answer.error;
  out.revision = answer.revision;
  out.no_store = true;
  // What is over soon; durability_unknown and stopped wait for a person.
  out.retry_after_s = answer.error == Errc::store_busy || answer.error == Errc::overload ||
                              answer.error == Errc::payload_budget
                          ? 1
                          : 0;
  // An empty reply has a type as well (a document of no bytes is one); 204 has no content to be of any.
  out.content_type = answer.status == 204 ? std::string_view() : text_of(answer.type);
  swap(out.body, answer.body);
  answer.body.reset();
}

void respond_error(Response& out, std::uint16_t status, Errc error, std::string_view line) {
  out.status = status;
  out.error = error;
  out.content_type = text_of(ContentType::text);
  out.body.reset();
  out.body.text.assign(line);
  out.body.text.push_back('\n');
}

}  // namespace sluice::proxy
