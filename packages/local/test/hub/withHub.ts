import { Hub } from "@seatrial/hub"
import { ConfigProvider, Effect, Layer } from "effect"
import type { HubFault, HubRequest } from "../../src/hub/HubFault.ts"
import { SampleHub } from "../../src/hub/SampleHub.ts"
import type { SampleRepository } from "../../src/hub/SampleRepository.ts"

/** A hub client and a sample hub for one test. `asked` collects the requests to the hub. */
export const withHub = <A, E>(
  use: (hub: Hub["Service"], asked: ReadonlyArray<HubRequest>, address: string) => Effect.Effect<A, E>,
  options: {
    readonly repositories?: ReadonlyArray<SampleRepository>
    readonly pageSize?: number
    readonly faults?: (request: HubRequest) => HubFault | undefined
    readonly settings?: Readonly<Record<string, string>>
  } = {}
) => {
  const asked: Array<HubRequest> = []
  const sample = SampleHub.layer({
    port: 0,
    ...(options.repositories === undefined ? {} : { repositories: options.repositories }),
    ...(options.pageSize === undefined ? {} : { pageSize: options.pageSize }),
    faults: (request) => {
      asked.push(request)
      return options.faults?.(request)
    }
  })
  const settings = Layer.unwrap(
    Effect.map(SampleHub, ({ address }) =>
      ConfigProvider.layer(ConfigProvider.fromUnknown({ HF_ENDPOINT: address, HUB_RETRY_DELAY: "1 millis", ...options.settings }))
    )
  )
  return Effect.gen(function* () {
    const { address } = yield* SampleHub
    return yield* use(yield* Hub, asked, address)
  }).pipe(Effect.provide(Hub.layer.pipe(Layer.provide(settings), Layer.provideMerge(sample))))
}
