/** Requests that must come for one of them to be sent a second time. */
const share = 10
/** Second attempts that a model has in hand which nobody asked for. */
const inHand = 10

/** Keeps second attempts to a tenth of a model's traffic: where all its engines fail, trying again must not double what they get. */
export class RetryBudget {
  #requests = share * inHand

  /** A request came. */
  earn() {
    if (this.#requests < share * inHand) this.#requests++
  }

  /** Whether a second attempt may be made; then it counts. */
  spend(): boolean {
    if (this.#requests < share) return false
    this.#requests -= share
    return true
  }
}
