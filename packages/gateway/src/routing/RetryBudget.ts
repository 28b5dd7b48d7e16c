/** Requests that pay for one second attempt. */
const share = 10
/** Second attempts available before any request arrives. */
const inHand = 10

/**
 * Limits second attempts to a tenth of a model's requests, and ten more: if all engines fail, retries must not double
 * their load.
 */
export class RetryBudget {
  #requests = share * inHand

  /** A request arrived. */
  earn() {
    if (this.#requests < share * inHand) this.#requests++
  }

  /** Takes a second attempt from the budget. Returns false if the budget is empty. */
  spend(): boolean {
    if (this.#requests < share) return false
    this.#requests -= share
    return true
  }
}
