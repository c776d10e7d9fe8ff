#include "proxy/engine/resolve.h"

#include "proxy/engine/answers.h"
#include "proxy/engine/fields.h"
#include "vm/base/utf8.h"
#include "vm/slot.h"

namespace sluice::proxy {
namespace {

bool refuse_fields(Event& event, const FieldsRefused& why) {
  if (why.error != Errc::none) refuse(event.answer, 400, why.error, why.line);
  else answer_fault(event.answer, why.fault, why.line + "\n");
  return false;
}

bool take_body(Event& event, const Buffer& body, const Served::Input& in, bool object) {
  if (!in.takes_body) {
    if (body.size() == 0) return true;
    refuse(event.answer, 400, Errc::body, "`" + in.declared->name + "` takes no body");
    return false;
  }
  const std::string_view bytes = body.view();
  vm::Value value = vm::Value::span(bytes, vm::type_of(in.body.base));
  if (in.body.base != vm::Base::bytes && !valid_utf8(bytes)) {
    refuse(event.answer, 400, Errc::invalid, "the body is not UTF-8");
    return false;
  }
  if (const vm::Fault fault = vm::narrow(in.body, value); fault != vm::Fault::none) {
    answer_fault(event.answer, fault, "the body must be " + vm::describe(in.body) + "\n", object);
    return false;
  }
  event.body = body;
  return true;
}

bool resolve_view(Event& event, const Call& call, const Served& served) {
  const std::optional<std::uint32_t> number = served.find_view(call.name);
  if (!number) {
    std::string line = "there is no view `";
    line.append(call.name).append("`");
    if (!served.view_names.empty()) {
      line += "; there is ";
      append_names(line, served.view_names, [](const auto& entry) { return entry.first; });
    }
    refuse(event.answer, 404, Errc::no_view, line);
    return false;
  }
  if (call.body.size() > 0) {
    refuse(event.answer, 400, Errc::body, "a view takes no body");
    return false;
  }
  event.number = *number;
  event.writes = false;
  const Served::View& view = served.views[*number];
  Paging paging;
  if (!view.asked.empty() || !call.query.empty()) {
    FieldsRefused why;
    if (!encode_fields(view.asked, call.query, "`" + view.declared->name + "`", event.fields, why, view.paged()) ||
        (view.paged() && !read_paging(call.query, paging, why)))
      return refuse_fields(event, why);
  }
  event.from = paging.from;
  event.count = paging.count;
  return true;
}

bool resolve_input(Event& event, const Call& call, const Served& served) {
  const std::optional<std::uint32_t> number = served.find_input(call.name);
  if (!number) {
    std::string line = "there is no input `";
    line.append(call.name).append("`");
    if (!served.input_names.empty()) {
      line += "; there is ";
      append_names(line, served.input_names, [](const auto& entry) { return entry.first; });
    }
    refuse(event.answer, 404, Errc::no_input, line);
    return false;
  }
  const Served::Input& in = served.inputs[*number];
  if (in.declared->keyed) {
    refuse(event.answer, 400, Errc::keyed, "`" + in.declared->name + "` is for a document: it is reached at objects/KEY");
    return false;
  }
  if (in.declared->kind == vm::InputKind::timer) {
    refuse(event.answer, 404, Errc::no_input, "`" + in.declared->name + "` is a timer: nobody sends it");
    return false;
  }
  event.number = *number;
  event.writes = in.writes;
  if (!in.asked.empty() || !call.query.empty()) {
    FieldsRefused why;
    if (!encode_fields(in.asked, call.query, "`" + in.declared->name + "`", event.fields, why))
      return refuse_fields(event, why);
  }
  return take_body(event, call.body, in, false);
}

bool resolve_object(Event& event, const Call& call, const Served& served) {
  const std::optional<std::uint32_t> number = call.verb == Verb::show   ? served.show
                                              : call.verb == Verb::edit ? served.edit
                                                                        : served.remove;
  if (!number) {
    if (served.serves_objects()) refuse(event.answer, 405, Errc::method, "documents of this store are not removed");
    else refuse(event.answer, 404, Errc::route, "this store has no documents");
    return false;
  }
  if (!vm::is_slug(call.name)) {
    refuse(event.answer, 400, Errc::request, "a key is 1 to 64 of A-Z a-z 0-9 - _");
    return false;
  }
  if (!call.query.empty()) {
    refuse(event.answer, 400, Errc::query, "a document takes no parameters");
    return false;
  }
  if (call.verb != Verb::show) {
    if (call.condition == Condition::none) {
      refuse(event.answer, 428, Errc::condition,
             call.verb == Verb::edit ? "say If-None-Match: * to create or If-Match: \"REV\" to replace"
                                     : "say If-Match: \"REV\"");
      return false;
    }
    if (call.verb == Verb::remove && call.condition == Condition::absent) {
      refuse(event.answer, 400, Errc::request, "what does not exist is not removed; say If-Match: \"REV\"");
      return false;
    }
  }
  const Served::Input& in = served.inputs[*number];
  event.number = *number;
  event.writes = call.verb != Verb::show || in.writes;
  event.key = call.name;
  event.condition = call.condition;
  event.revision = call.revision;
  event.more = call.more;
  return take_body(event, call.body, in, true);
}

}  // namespace

bool resolve(Event& event, const Call& call, const Served& served) {
  event.verb = call.verb;
  event.fields.clear();
  switch (call.verb) {
    case Verb::view: return resolve_view(event, call, served);
    case Verb::input: return resolve_input(event, call, served);
    default: return resolve_object(event, call, served);
  }
}

bool resolve_again(Event& event, const Served& from, const Served& to) {
  // Rare: once per event that was under way when its module was swapped; so it may allocate.
  const std::string encoded = event.fields;
  const std::string key = event.key;
  std::vector<std::string> texts;
  std::string first_row, rows;
  std::vector<Parameter> query;
  Call call;
  call.verb = event.verb;
  call.body = event.body;
  call.condition = event.condition;
  call.revision = event.revision;
  call.more = event.more;
  if (event.verb == Verb::view) {
    const Served::View& view = from.views[event.number];
    call.name = view.declared->name;
    query_of(view.asked, encoded, texts, query);
    if (view.paged()) {
      first_row = std::to_string(event.from);
      rows = std::to_string(event.count);
      query.push_back({"from", first_row});
      query.push_back({"count", rows});
    }
  } else if (event.verb == Verb::input) {
    const Served::Input& in = from.inputs[event.number];
    call.name = in.declared->name;
    query_of(in.asked, encoded, texts, query);
  } else {
    call.name = key;
  }
  call.query = query;
  return resolve(event, call, to);
}

}  // namespace sluice::proxy
