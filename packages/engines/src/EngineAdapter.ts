import type { EngineContract, HostClass, Measured, NamedFailure, ServingSettings } from "@seatrial/domain"

export interface EngineStart {
  readonly settings: ServingSettings
  /** The names that the model is or may come to be called by, the callable one first: an engine serves on where its model is published or withdrawn. */
  readonly servedNames: ReadonlyArray<string>
  /** The weights' folder inside the container. */
  readonly modelPath: string
  readonly hostClass: Pick<HostClass, "gpu_count" | "gpu_memory_bytes">
}

/** How to run an engine's container: each argument is one rendered word. */
export interface EngineContainer {
  readonly command: ReadonlyArray<string>
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly port: number
  /** Answers 200 once the engine takes requests. */
  readonly readinessPath: string
}

/** An engine at one version: what it can do, how it is started, and how what it says is read. */
export interface EngineAdapter extends EngineContract {
  readonly container: (start: EngineStart) => EngineContainer
  /** From the text of `/metrics` and the container's log. */
  readonly measured: (said: { readonly metrics: string; readonly log: string }) => Measured
  /** A named reason for a start that failed, from the end of the container's log. */
  readonly bootFailure: (log: string) => NamedFailure
}
