import type { Route } from "@seatrial/store"
import { Effect, Redacted } from "effect"
import type { Admission } from "./Admission.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import { ImageFetcher } from "./images/ImageFetcher.ts"
import { inlineImages } from "./images/inlineImages.ts"
import { Refusal } from "./refusals.ts"
import { CacheSalts } from "./vocabulary/CacheSalts.ts"
import { type CheckedRequest, checkRequest } from "./vocabulary/checkRequest.ts"
import { LargeBody } from "./vocabulary/LargeBodies.ts"
import type { ParsedBody } from "./vocabulary/parseBody.ts"
import { targetOf } from "./vocabulary/targetOf.ts"

/** Checks a body against a route and inserts its images. Returns an effect only if it must wait, or a refusal. */
export const makeCheckBody = Effect.fnUntraced(function* (reportDemand: (route: Route) => void) {
  const { cacheSecret } = yield* GatewayConfig
  const fetcher = yield* ImageFetcher
  const salts = new CacheSalts(Redacted.value(cacheSecret))

  /** A refused request starts no engine. An engine that is scaled to zero starts while the images are downloaded. */
  const withImages = (admission: Admission, to: Route, checked: CheckedRequest): Effect.Effect<CheckedRequest, Refusal> | CheckedRequest => {
    reportDemand(to)
    if (checked.images.length === 0) return checked
    return inlineImages(fetcher, admission.caller.orgId, to.capabilities.image_input, checked, admission)
  }

  return (admission: Admission, to: Route, body: ParsedBody): Effect.Effect<CheckedRequest, Refusal> | CheckedRequest => {
    const { caller, endpoint, exchange } = admission
    const target = targetOf(to, caller, exchange.id, salts)
    if (body instanceof LargeBody) {
      return Effect.flatMap(body.check(endpoint, target), (checked) => {
        const complete = withImages(admission, to, checked)
        return Effect.isEffect(complete) ? complete : Effect.succeed(complete)
      })
    }
    const checked = checkRequest(endpoint, body, target)
    return checked instanceof Refusal ? checked : withImages(admission, to, checked)
  }
})
