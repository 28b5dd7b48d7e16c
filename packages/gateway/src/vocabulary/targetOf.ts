import type { RequestId } from "@seatrial/domain"
import type { Caller, Route } from "@seatrial/store"
import type { Target } from "./Checking.ts"

/** What a route means for the request that is sent there. */
export const targetOf = ({ adapted, capabilities, maxModelLen, runtime }: Route, _caller: Caller, requestId: RequestId): Target => ({
  capabilities,
  runtime,
  adapted,
  maxModelLen,
  knowsDeveloper: false,
  requestId,
  cacheSalt: null
})
