/** Assigns each pod a loopback address: `127.a.0.2` to `127.a.254.254`. */
export class PodAddresses {
  readonly #prefix: string
  readonly #owners = new Map<string, string>()
  readonly #addresses = new Map<string, string>()
  #next = 2

  /** `network`: the first two numbers, for instance `127.77`. */
  constructor(network: string) {
    this.#prefix = network
  }

  /** Reserves the address that a pod already has; false if it is in another network or belongs to another pod. */
  keep(uid: string, address: string): boolean {
    const owner = this.#owners.get(address)
    if (!address.startsWith(`${this.#prefix}.`) || (owner !== undefined && owner !== uid)) return false
    this.release(uid)
    this.#owners.set(address, uid)
    this.#addresses.set(uid, address)
    return true
  }

  /** The address of the pod. Released addresses are reused last, so that a late client does not reach another pod. */
  take(uid: string): string | undefined {
    const known = this.#addresses.get(uid)
    if (known !== undefined) return known
    for (let tried = 0; tried < 0x1_0000; tried++) {
      const number = this.#next
      this.#next = number >= 0xfefe ? 2 : number + 1
      const address = `${this.#prefix}.${number >> 8}.${number & 0xff}`
      // Some clients refuse an address that ends in 0 or 255 as a network or broadcast address.
      if ((number & 0xff) === 0 || (number & 0xff) === 0xff || this.#owners.has(address)) continue
      this.#owners.set(address, uid)
      this.#addresses.set(uid, address)
      return address
    }
    return undefined
  }

  release(uid: string): void {
    const address = this.#addresses.get(uid)
    if (address !== undefined) this.#owners.delete(address)
    this.#addresses.delete(uid)
  }
}
