import { resolve } from "node:path"
import { Console, Context, Effect, Layer, Option } from "effect"
import { readHubFolder } from "../hub/readHubFolder.ts"
import { SampleHub } from "../hub/SampleHub.ts"
import { sampleRepositories } from "../hub/sampleRepositories.ts"
import { StartError } from "./StartError.ts"

/** The model hub of a system. */
interface OpenHub {
  readonly address: string
  /** The models of the sample hub, the best one to try first; empty for another hub. */
  readonly models: ReadonlyArray<string>
}

const readFolder = Effect.fnUntraced(function* (folder: string, samples: ReturnType<typeof sampleRepositories>) {
  const path = resolve(folder)
  yield* Console.log(`Reading the models of ${path}.`)
  return yield* readHubFolder(path, samples)
})

/**
 * Starts the sample hub with the models of `folder`, unless `HF_ENDPOINT` names another hub. `port`: another one is
 * used if it is taken.
 */
export const openHub = Effect.fn("openHub")(function* ({
  endpoint,
  folder,
  port
}: {
  readonly endpoint: string
  readonly folder: Option.Option<string>
  readonly port: number
}) {
  if (endpoint !== "" && Option.isSome(folder))
    return yield* new StartError({ message: `HF_ENDPOINT and --hub-folder both choose a hub. Unset HF_ENDPOINT, or leave out --hub-folder.` })
  if (endpoint !== "") return { address: endpoint, models: [] } satisfies OpenHub
  const samples = sampleRepositories()
  const own = Option.isSome(folder) ? yield* readFolder(folder.value, samples) : []
  const repositories = [...own, ...samples]
  const open = (wanted: number) => Layer.build(SampleHub.layer({ port: wanted, repositories }))
  const hub = Context.get(yield* open(port).pipe(Effect.catchTag("SampleHubFailed", () => open(0))), SampleHub)
  return { address: hub.address, models: repositories.map(({ name }) => name) } satisfies OpenHub
})
