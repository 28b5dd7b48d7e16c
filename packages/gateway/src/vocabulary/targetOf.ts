import { type EngineWire, type ModelCapabilities, publicCapabilities, type RequestId } from "@seatrial/domain"
import { engineWire } from "@seatrial/engines"
import type { Caller, Route } from "@seatrial/store"
import type { CacheSalts } from "./CacheSalts.ts"
import type { Target } from "./Checking.ts"

const shared = new WeakMap<EngineWire, WeakMap<ModelCapabilities, ModelCapabilities>>()

/**
 * The capabilities of a public model. Returns the same object for the same input, because the checks of requests are
 * cached by this object.
 */
const sharedCapabilities = (wire: EngineWire, capabilities: ModelCapabilities): ModelCapabilities => {
  if (wire.unsaltedPaths.size === 0) return capabilities
  const ofWire = shared.get(wire) ?? new WeakMap<ModelCapabilities, ModelCapabilities>()
  const known = ofWire.get(capabilities)
  if (known !== undefined) return known
  const computed = publicCapabilities(wire, capabilities)
  ofWire.set(capabilities, computed)
  shared.set(wire, ofWire)
  return computed
}

/** The target of a request on a route. */
export const targetOf = (
  { adapted, capabilities, isPublic, knowsDeveloper, maxModelLen, modelId, runtime, sampling }: Route,
  caller: Caller,
  requestId: RequestId,
  salts: CacheSalts
): Target => {
  const wire = engineWire(runtime)
  return {
    capabilities: isPublic ? sharedCapabilities(wire, capabilities) : capabilities,
    wire,
    adapted,
    maxModelLen,
    knowsDeveloper,
    sampling,
    requestId,
    cacheSalt: salts.of(caller.orgId, modelId)
  }
}
