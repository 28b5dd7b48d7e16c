import type { EngineContract, EngineWire, HostClass, Measured, ModelConfig, NamedFailure, ServingSettings, TrialOffers } from "@seatrial/domain"
import type { AdapterFiles } from "./adapterFiles.ts"

export interface EngineStart {
  readonly settings: ServingSettings
  readonly config: ModelConfig
  /**
   * All callable names that the model has now or may get while the engine runs, the current one first. Publishing or
   * withdrawing a model does not restart its engine.
   */
  readonly servedNames: ReadonlyArray<string>
  /** The folder of the weights inside the container; for an adapter, the folder of its base model. */
  readonly modelPath: string
  /** The commit of these weights; absent if they were merged. */
  readonly commit?: string
  /**
   * The chat template for all requests. Present only if the model has several templates among which the engine might
   * choose, and the adapter has no template.
   */
  readonly chatTemplate?: string
  /** Absent if the model has no adapter. */
  readonly adapter?: AdapterFiles | undefined
  readonly hostClass: Pick<HostClass, "gpu_pool" | "gpu_count" | "gpu_memory_bytes">
  /** Seconds after the container's start within which the engine must be ready. */
  readonly bootSeconds: number
  /** A folder inside the container for compiled code. No other organization writes to it. */
  readonly cachePath: string
}

/** A readiness check of an engine. Times are in seconds. */
export interface EngineProbe {
  readonly path: string
  readonly periodSeconds: number
  readonly timeoutSeconds: number
}

/** The container of an engine. */
export interface EngineContainer {
  readonly command: ReadonlyArray<string>
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly port: number
  readonly probes: { readonly startup: EngineProbe; readonly readiness: EngineProbe }
  /** The group that owns the folders of the image. */
  readonly group: number
}

export type EngineNames = "all" | "any"

/** One version of an engine: its capabilities, its container, and the readers of its output. */
export interface EngineAdapter extends EngineContract {
  /** How it behaves on the wire. */
  readonly wire: EngineWire
  readonly needsGpu: boolean
  /** Which names requests may use for the model: all names that the engine was started with, or any name. */
  readonly names: EngineNames
  /** The environment variables that its containers may set, for any settings. A host class cannot set them. */
  readonly variables: ReadonlyArray<string>
  readonly container: (start: EngineStart) => EngineContainer
  /** How the trial talks to the engine. `simulated`: whether the reference engine runs in its place. */
  readonly offers: (settings: ServingSettings, simulated: boolean) => TrialOffers
  /** Reads figures from the text of `/metrics` and the log of the container. */
  readonly measured: (output: { readonly metrics: string; readonly log: string }) => Measured
  /** The log line that reports that the weights are loaded. `{}` matches a number, `{*}` matches any text. */
  readonly weightsLoaded: string
  /** Returns the cause of a failed start, given the end of the container's log. */
  readonly bootFailure: (log: string) => NamedFailure
}

/**
 * The version that receipts and catalogs show. On simulated GPUs the reference engine runs in place of every engine
 * that needs a GPU.
 */
export const versionOn = ({ needsGpu, version }: Pick<EngineAdapter, "needsGpu" | "version">, { simulated }: Pick<HostClass, "simulated">): string =>
  simulated && needsGpu ? `simulated-${version}` : version
