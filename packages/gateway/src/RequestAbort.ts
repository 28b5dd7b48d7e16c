/** What an AbortSignal offers, as far as the gateway needs it. */
export interface Signal {
  readonly aborted: boolean
  readonly addEventListener: (type: "abort", listener: () => void) => void
  readonly removeEventListener: (type: "abort", listener: () => void) => void
}

/** `gone`: the caller left. `stopped`: the gateway is to end. `unrecorded`: the record could not be written. `revoked`: the caller's key is no longer in force. */
export type AbortReason = "gone" | "stopped" | "unrecorded" | "revoked"

/** That there is nobody to answer any more, told once. An AbortController does the same for ten times the processor time, which every request would pay. */
export class RequestAbort implements Signal {
  #reason: AbortReason | null = null
  readonly #listeners: Array<() => void> = []

  get aborted(): boolean {
    return this.#reason !== null
  }

  /** Null while there is somebody. */
  get reason(): AbortReason | null {
    return this.#reason
  }

  /** The first reason counts. */
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
