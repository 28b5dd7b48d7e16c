import type { EngineContract, EngineWire, HostClass, Measured, ModelConfig, NamedFailure, ServingSettings, TrialOffers } from "@seatrial/domain"
import type { AdapterFiles } from "./adapterFiles.ts"

export interface EngineStart {
  readonly settings: ServingSettings
  readonly config: ModelConfig
  /** The names that the model is or may come to be called by, the callable one first: an engine serves on where its model is published or withdrawn. */
  readonly servedNames: ReadonlyArray<string>
  /** The weights' folder inside the container; an adapter's base's. */
  readonly modelPath: string
  /** The commit of those weights; absent where they were merged. */
  readonly commit?: string
  /** The one chat template of all requests, where the model has others that the engine might take for some; absent where it has none, or the adapter has one of its own. */
  readonly chatTemplate?: string
  /** Absent: the model has none. */
  readonly adapter?: AdapterFiles | undefined
  readonly hostClass: Pick<HostClass, "gpu_pool" | "gpu_count" | "gpu_memory_bytes">
  /** Seconds from the container's start until it has to be ready. */
  readonly bootSeconds: number
  /** A folder inside the container for what it compiles, its own and its organisation's. */
  readonly cachePath: string
}

/** How an engine is asked whether it is ready. Times are in seconds. */
export interface EngineProbe {
  readonly path: string
  readonly periodSeconds: number
  readonly timeoutSeconds: number
}

/** How to run an engine's container. */
export interface EngineContainer {
  readonly command: ReadonlyArray<string>
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly port: number
  readonly probes: { readonly startup: EngineProbe; readonly readiness: EngineProbe }
  /** The group that its image's folders belong to. */
  readonly group: number
}

export type EngineNames = "all" | "any"

/** An engine at one version: what it can do, how it is started, and how what it says is read. */
export interface EngineAdapter extends EngineContract {
  /** How it behaves on the wire. */
  readonly wire: EngineWire
  readonly needsGpu: boolean
  /** By which names requests may call the model: those that it is started with, or whatever they like. */
  readonly names: EngineNames
  readonly container: (start: EngineStart) => EngineContainer
  /** How its trial is spoken with it. `simulated`: the reference engine stands in for it. */
  readonly offers: (settings: ServingSettings, simulated: boolean) => TrialOffers
  /** From the text of `/metrics` and the container's log. */
  readonly measured: (said: { readonly metrics: string; readonly log: string }) => Measured
  /** The line of its log that says that the weights are loaded: `{}` stands for a number, `{*}` for anything. */
  readonly weightsLoaded: string
  /** A named reason for a start that failed, from the end of the container's log. */
  readonly bootFailure: (log: string) => NamedFailure
}

/** The version that receipts and catalogs show. On simulated GPUs the reference engine runs in place of every engine that needs a GPU. */
export const versionOn = ({ needsGpu, version }: Pick<EngineAdapter, "needsGpu" | "version">, { simulated }: Pick<HostClass, "simulated">): string =>
  simulated && needsGpu ? `simulated-${version}` : version
