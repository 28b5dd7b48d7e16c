import type { Agent, OutgoingHttpHeaders } from "node:http"
import type { RequestOptions } from "node:https"
import { Data, type Effect } from "effect"
import type { KubeError } from "./KubeError.ts"

/** No access to the cluster is configured, or the configuration cannot be read. */
export class KubeConnectionError extends Data.TaggedError("KubeConnectionError")<{ readonly message: string }> {}

/** The authentication of a request: headers, and for TLS the certificate authority and client certificate. */
export interface Credentials {
  readonly headers: OutgoingHttpHeaders
  readonly tls: RequestOptions
  /** Undefined unless the kubeconfig has a proxy. */
  readonly proxy: Agent | undefined
}

/** The address of a server and the source of credentials, before caching. */
export interface Access {
  readonly server: URL
  readonly namespace: string
  readonly prepare: Effect.Effect<Credentials, KubeError>
}
