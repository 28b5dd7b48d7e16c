/**
 * Whose turn it is at one server that organizations share, by the time that each has used. The organization that used
 * less goes first. A pause earns no credit. (Start-time fair queuing: Goyal, Vin and Cheng, 1996. Here, the cost of a
 * service is measured when it ends.)
 */
export class FairShares {
  /** The virtual time: the start of the latest service. */
  #now = 0
  /** When each organization's services end, in virtual time. Absent if that has passed. */
  readonly #ends = new Map<string, number>()

  /** The virtual time at which the organization's next service starts. The least one is next. */
  startOf(org: string): number {
    return Math.max(this.#now, this.#ends.get(org) ?? 0)
  }

  /** Notes that the service of an organization starts. */
  begin(org: string): void {
    this.#now = this.startOf(org)
  }

  /** Notes what the service that started last has cost. */
  end(org: string, cost: number): void {
    this.#ends.set(org, this.startOf(org) + cost)
  }

  /** Forgets all use. Call it when no service runs or waits. */
  clear(): void {
    this.#ends.clear()
    this.#now = 0
  }
}
