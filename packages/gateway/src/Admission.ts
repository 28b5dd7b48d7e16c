import type { InferencePath } from "@seatrial/domain"
import type { Caller, Route } from "@seatrial/store"
import type { BodyShare } from "./BodyBudget.ts"
import type { Exchange } from "./Exchange.ts"
import type { ReceiptDigests } from "./ReceiptDigests.ts"
import type { RequestAbort } from "./RequestAbort.ts"
import type { RoutedRequest } from "./routing/RoutedRequest.ts"

/** A request before it reaches an engine: the data that a refusal reports, and the resources to release at the end. */
export interface Admission {
  readonly exchange: Exchange
  readonly caller: Caller
  readonly endpoint: InferencePath
  readonly requestAbort: RequestAbort
  /** The memory of the request's body and of a large answer. */
  readonly share: BodyShare
  /** The memory of the frames that the caller has not read. */
  readonly unreadFrames: BodyShare
  streamed: boolean | null
  route: Route | null
  routedRequest: RoutedRequest | null
  /** Whether the request counts toward the concurrency of its caller. */
  isCounted: boolean
  /** Whether the request has an engine. Then it may continue for a while after its key ended. */
  isServed: boolean
  /** Ends the request after its key ended. */
  end: NodeJS.Timeout | undefined
  downloads: Map<string, Buffer> | undefined
  /** Null if the caller did not ask for digests in the receipt. */
  digests: ReceiptDigests | null
}
