// A stored document as the body of an answer: small ones are copied, large ones lent.
#pragma once
#include <memory>
#include <utility>

#include "proxy/body.h"
#include "proxy/engine/answers.h"
#include "proxy/engine/environment.h"

namespace sluice::proxy {

// Takes the pieces out of `document`. The caller has the environment pinned.
inline void give_document(Body& body, store::Document& document, const store::Snapshot& snapshot,
                          Environment& environment) {
  if (document.bytes <= kCopyMax) {
    for (const std::string_view piece : document.pieces) body.text.append(piece);
    return;
  }
  body.loan = std::make_shared<Lent>(environment.shared(), snapshot.loan());
  body.pieces.swap(document.pieces);
}

}  // namespace sluice::proxy
