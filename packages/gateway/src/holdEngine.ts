import { RequestAbort } from "./RequestAbort.ts"

export interface EngineHold {
  /** Aborted when the engine must stop its work. */
  readonly signal: RequestAbort
  /** Call it when the engine has ended. */
  readonly release: () => void
}

/**
 * Decides when an engine stops its work on an aborted request: at once if the gateway stops or the record cannot be
 * written, but `bound` milliseconds after the caller left. The computed prompt stays in the engine's prefix cache, so
 * the gateway waits for its usage. `onGone` is called when the caller leaves.
 */
export const holdEngine = (requestAbort: RequestAbort, bound: number, onGone: () => void): EngineHold => {
  const signal = new RequestAbort()
  let timer: NodeJS.Timeout | undefined
  const onAbort = () => {
    const { reason } = requestAbort
    if (reason === null) return
    if (reason !== "gone" || bound === 0) return signal.abort(reason)
    timer = setTimeout(() => signal.abort(reason), bound)
    onGone()
  }
  if (requestAbort.aborted) onAbort()
  else requestAbort.addEventListener("abort", onAbort)
  return {
    signal,
    release: () => {
      clearTimeout(timer)
      requestAbort.removeEventListener("abort", onAbort)
    }
  }
}
