import { Departure } from "./Departure.ts"

export interface EngineHold {
  /** Aborted when the engine is to stop its work. */
  readonly signal: Departure
  /** Call it when the engine has ended. */
  readonly release: () => void
}

/**
 * Decides when an engine stops its work on a request that has nobody to answer: at once if the gateway stops or the record cannot be written, but `bound` milliseconds after
 * the caller left. What an engine has computed by then stays in its prefix cache, so its usage is waited for. `onGone` is called when the caller leaves.
 */
export const holdEngine = (departure: Departure, bound: number, onGone: () => void): EngineHold => {
  const signal = new Departure()
  let timer: NodeJS.Timeout | undefined
  const onAbort = () => {
    const { reason } = departure
    if (reason === null) return
    if (reason !== "gone" || bound === 0) return signal.abort(reason)
    timer = setTimeout(() => signal.abort(reason), bound)
    onGone()
  }
  if (departure.aborted) onAbort()
  else departure.addEventListener("abort", onAbort)
  return {
    signal,
    release: () => {
      clearTimeout(timer)
      departure.removeEventListener("abort", onAbort)
    }
  }
}
