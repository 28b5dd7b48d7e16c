import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { UnavailableResponse } from "./publicErrors.ts"

const Status = Schema.Struct({ status: Schema.Literal("ok") }).annotate({ identifier: "Health" })

/** For probes; needs no key. */
export class SystemGroup extends HttpApiGroup.make("system").add(
  HttpApiEndpoint.get("health", "/healthz", { success: Status }),
  HttpApiEndpoint.get("readiness", "/readyz", { success: Status, error: UnavailableResponse })
) {}
