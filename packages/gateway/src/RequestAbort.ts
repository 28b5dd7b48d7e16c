/** The members of an AbortSignal that the gateway needs. */
export interface Signal {
  readonly aborted: boolean
  readonly addEventListener: (type: "abort", listener: () => void) => void
  readonly removeEventListener: (type: "abort", listener: () => void) => void
}

/**
 * `gone`: the caller left. `stopped`: the gateway is shutting down. `unrecorded`: the row could not be inserted.
 * `revoked`: the caller's key ended.
 */
export type AbortReason = "gone" | "stopped" | "unrecorded" | "revoked"

/**
 * Signals once that a request needs no answer any more. An AbortController costs ten times as much processor time, on
 * every request.
 */
export class RequestAbort implements Signal {
  #reason: AbortReason | null = null
  readonly #listeners: Array<() => void> = []

  get aborted(): boolean {
    return this.#reason !== null
  }

  /** Null if not aborted. */
  get reason(): AbortReason | null {
    return this.#reason
  }

  /** Later reasons are ignored. */
  abort(reason: AbortReason) {
    if (this.#reason !== null) return
    this.#reason = reason
    for (let next = this.#listeners.shift(); next !== undefined; next = this.#listeners.shift()) next()
  }

  addEventListener(_: "abort", listener: () => void) {
    this.#listeners.push(listener)
  }

  removeEventListener(_: "abort", listener: () => void) {
    const at = this.#listeners.indexOf(listener)
    if (at !== -1) this.#listeners.splice(at, 1)
  }
}
