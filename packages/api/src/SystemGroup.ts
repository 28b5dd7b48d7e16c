import { SigningKeySet } from "@seatrial/domain"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { cached } from "./envelopes.ts"
import { UnavailableResponse } from "./publicErrors.ts"

const Status = Schema.Struct({ status: Schema.Literal("ok") }).annotate({ identifier: "Health" })

/** Probes, and the keys that receipts are verified with. Requires no key. */
export class SystemGroup extends HttpApiGroup.make("system").add(
  HttpApiEndpoint.get("health", "/healthz", { success: Status }),
  HttpApiEndpoint.get("readiness", "/readyz", { success: Status, error: UnavailableResponse }),
  HttpApiEndpoint.get("signingKeys", "/.well-known/jwks.json", {
    success: [HttpApiSchema.WithHeaders(SigningKeySet, cached), HttpApiSchema.WithHeaders(Schema.Void.pipe(HttpApiSchema.status(304)), cached)]
  })
) {}
