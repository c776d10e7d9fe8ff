#include "proxy/engine/answers.h"

namespace sluice::proxy {
namespace {

struct Told {
  std::uint16_t status;
  Errc error;
  std::string_view line;
};

Told told(vm::Fault fault) {
  switch (fault) {
    case vm::Fault::divide: return {422, Errc::divide, "a division by zero"};
    case vm::Fault::non_finite: return {422, Errc::non_finite, "a result that is not a finite number"};
    case vm::Fault::clamp: return {422, Errc::clamp, "a number outside its range"};
    case vm::Fault::limit: return {422, Errc::limit, "more than the module allows"};
    case vm::Fault::not_found: return {404, Errc::not_found, "what the event needs does not exist"};
    case vm::Fault::encoding: return {422, Errc::encoding, "a text or document that is not of the right form"};
    case vm::Fault::exists: return {409, Errc::exists, "it exists already"};
    case vm::Fault::denied: return {403, Errc::denied, "the module refuses this"};
    case vm::Fault::none: break;
  }
  return {500, Errc::storage, "the event failed"};
}

}  // namespace

void refuse(Answer& answer, std::uint16_t status, Errc error, std::string_view line) {
  answer.status = status;
  answer.error = error;
  answer.type = ContentType::text;
  answer.body.text.assign(line).push_back('\n');
}

void answer_fault(Answer& answer, vm::Fault fault, std::string_view words, bool object, std::uint64_t present) {
  Told t = told(fault);
  if (object && fault == vm::Fault::limit) t.status = 413;
  if (object && fault == vm::Fault::exists) {
    t = {412, Errc::conflict, "another revision is there"};
    answer.revision = present;
  }
  if (object && fault == vm::Fault::not_found) t.line = "there is no such document";
  refuse(answer, t.status, t.error, t.line);
  if (!words.empty()) answer.body.text.assign(words);
}

void answer_conflict(Answer& answer, std::uint64_t present) {
  refuse(answer, 412, Errc::conflict,
         present != 0 ? "another revision is there; its ETag comes with this answer" : "there is no such document");
  answer.revision = present;
}

void answer_no_value(Answer& answer, std::string_view view) {
  refuse(answer, 404, Errc::no_value, "");
  answer.body.text.assign("`").append(view).append("` has no value now\n");
}

void answer_store_error(Answer& answer, Errc error) {
  switch (error) {
    case Errc::full:
      return refuse(answer, 507, Errc::full, "the store is full; nothing was stored");
    case Errc::durability_unknown:
      return refuse(answer, 500, Errc::durability_unknown,
                    "the store failed while saving: the change may be stored or not; ask again with your revision");
    case Errc::stopped:
      return refuse(answer, 503, Errc::stopped, "the store is closed after a failure until it is opened again");
    case Errc::store_busy:
      return refuse(answer, 503, Errc::store_busy, "the store has too much waiting; try again");
    case Errc::damaged:
      return refuse(answer, 500, Errc::storage, "the stored data is damaged");
    default:
      return refuse(answer, 500, Errc::storage, "the store could not read or save; nothing was stored");
  }
}

void answer_unreadable(Answer& answer, Errc error) {
  answer_store_error(answer, error);
  answer.body.text.assign("the change is stored; the document cannot be read back now\n");
}

}  // namespace sluice::proxy
