import type { RequestId } from "@seatrial/domain"
import type { Caller, Route } from "@seatrial/store"
import type { CacheSalts } from "./CacheSalts.ts"
import type { Target } from "./Checking.ts"

/** What a route means for the request that is sent there. */
export const targetOf = (
  { adapted, capabilities, knowsDeveloper, maxModelLen, modelId, runtime, sampling }: Route,
  caller: Caller,
  requestId: RequestId,
  salts: CacheSalts
): Target => ({
  capabilities,
  runtime,
  adapted,
  maxModelLen,
  knowsDeveloper,
  sampling,
  requestId,
  cacheSalt: salts.of(caller.orgId, modelId)
})
