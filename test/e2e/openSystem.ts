import { Effect } from "effect"
import { makeCaller } from "./Caller.ts"
import { openCluster, shortenBenchmark } from "./cluster.ts"
import { makeStateFolder, startSystem } from "./LocalSystem.ts"

/** Starts a local system in a new folder until the scope closes. The trials on these host classes have short benchmarks. */
export const openSystem = Effect.fnUntraced(function* (...shortened: ReadonlyArray<string>) {
  const folder = yield* makeStateFolder
  const { state } = yield* startSystem(folder, { SEATRIAL_DURABLE: "false" })
  const kube = yield* openCluster(state.kubeconfig)
  for (const hostClass of shortened) yield* shortenBenchmark(kube, hostClass)
  return { folder, state, caller: makeCaller(state.address, state.api_key), kube }
})
