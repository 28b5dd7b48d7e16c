import type { Agent, OutgoingHttpHeaders } from "node:http"
import type { RequestOptions } from "node:https"
import { Data, type Effect } from "effect"
import type { KubeError } from "./KubeError.ts"

/** No way to the cluster is configured, or what is configured cannot be read. */
export class KubeConnectionError extends Data.TaggedError("KubeConnectionError")<{ readonly message: string }> {}

/** What a request carries to be let in: headers, and for TLS the authority and client certificate. */
export interface Credentials {
  readonly headers: OutgoingHttpHeaders
  readonly tls: RequestOptions
  /** Only where the kubeconfig names a proxy. */
  readonly proxy: Agent | undefined
}

/** Where a server is and how to be let in, before anything is kept. */
export interface Access {
  readonly server: URL
  readonly namespace: string
  readonly prepare: Effect.Effect<Credentials, KubeError>
}
