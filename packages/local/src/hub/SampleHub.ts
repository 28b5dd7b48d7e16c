import { createServer } from "node:http"
import { Context, Data, Effect, Layer } from "effect"
import { answerHub } from "./answerHub.ts"
import type { HubFault, HubRequest } from "./HubFault.ts"
import type { SampleRepository } from "./SampleRepository.ts"
import { sampleRepositories } from "./sampleRepositories.ts"

/** The default token for gated sample repositories. */
export const sampleHubToken = "hf_seatrialSampleToken"

export interface SampleHubOptions {
  /** 0 for any free port. */
  readonly port: number
  /** The token for gated and private repositories (default: `sampleHubToken`). */
  readonly token?: string
  /** Default: the product's samples. */
  readonly repositories?: ReadonlyArray<SampleRepository>
  /** Files on one page of a list (default 1,000). */
  readonly pageSize?: number
  /** Milliseconds before each answer (default 0). */
  readonly latency?: number
  /** Called for each request. Returns the fault to inject. */
  readonly faults?: (request: HubRequest) => HubFault | undefined
}

/** The sample hub cannot listen, most likely because the port is in use. */
export class SampleHubFailed extends Data.TaggedError("SampleHubFailed")<{ readonly message: string }> {}

/**
 * A server with the HTTP interface of the hub for repositories that are generated from a fixed seed. It stops with its
 * scope.
 */
export class SampleHub extends Context.Service<SampleHub, { /** `http://127.0.0.1:<port>`, as for `HF_ENDPOINT`. */ readonly address: string }>()(
  "seatrial/SampleHub"
) {
  static readonly layer = (options: SampleHubOptions): Layer.Layer<SampleHub, SampleHubFailed> =>
    Layer.effect(
      SampleHub,
      Effect.gen(function* () {
        const server = createServer(
          answerHub({
            repositories: new Map((options.repositories ?? sampleRepositories()).map((repository) => [repository.name.toLowerCase(), repository])),
            token: options.token ?? sampleHubToken,
            pageSize: options.pageSize ?? 1_000,
            latency: options.latency ?? 0,
            faults: options.faults ?? (() => undefined)
          })
        )
        const port = yield* Effect.acquireRelease(
          Effect.callback<number, SampleHubFailed>((resume) => {
            server.once("error", (error) => resume(new SampleHubFailed({ message: error.message })))
            server.listen(options.port, "127.0.0.1", () => {
              const address = server.address()
              if (address !== null && typeof address === "object") resume(Effect.succeed(address.port))
            })
          }),
          () =>
            Effect.callback<void>((resume) => {
              server.close(() => resume(Effect.void))
              server.closeAllConnections()
            })
        )
        return SampleHub.of({ address: `http://127.0.0.1:${port}` })
      })
    )
}
