import type { OrgId } from "@seatrial/domain"
import { orgConcurrencyLimited, Refusal, unavailable } from "./refusals.ts"

const bodiesLimited = new Refusal({
  status: orgConcurrencyLimited.status,
  type: orgConcurrencyLimited.type,
  code: orgConcurrencyLimited.code,
  message: "The bodies and answers of the organization's concurrent requests are too large in total. Send fewer or smaller requests at once.",
  param: null,
  retryAfter: 2
})

/** The memory that one request has reserved. */
export interface BodyShare {
  /** Reserves more bytes, or returns the refusal. */
  readonly take: (bytes: number) => Refusal | null
  /** Releases all reserved bytes. */
  readonly release: () => void
}

/**
 * Memory that organizations share. Each organization may use as much as is left free: the first one gets half of it,
 * the next one half of the rest, and some memory always stays free. (The dynamic threshold of Choudhury and Hahne,
 * "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998.)
 */
class SharedRoom {
  readonly #size: number
  readonly #byOrg = new Map<OrgId, number>()
  #used = 0

  constructor(size: number) {
    this.#size = size
  }

  /** `share`: the organization has used up its share. `full`: other organizations use all of it. */
  take(orgId: OrgId, bytes: number): "taken" | "share" | "full" {
    const own = this.#byOrg.get(orgId) ?? 0
    const free = this.#size - this.#used - bytes
    if (own + bytes > free) return own > 0 || bytes > this.#size / 2 ? "share" : "full"
    this.#byOrg.set(orgId, own + bytes)
    this.#used += bytes
    return "taken"
  }

  give(orgId: OrgId, bytes: number) {
    if (bytes === 0) return
    const own = (this.#byOrg.get(orgId) ?? 0) - bytes
    if (own > 0) this.#byOrg.set(orgId, own)
    else this.#byOrg.delete(orgId)
    this.#used -= bytes
  }
}

/** Bytes of each request that may come from the reserve for small bodies. */
const smallBody = 64 * 1024
/** The fraction of the budget that is the reserve for small bodies. */
const smallPart = 1 / 8

/**
 * Limits the bytes of request bodies and large answers held at once. Each organization has a share, and large bodies
 * cannot use up the reserve for the first bytes of each request.
 */
export class BodyBudget {
  readonly #small: SharedRoom
  readonly #large: SharedRoom

  constructor(bytes: number) {
    this.#small = new SharedRoom(bytes * smallPart)
    this.#large = new SharedRoom(bytes * (1 - smallPart))
  }

  open(orgId: OrgId): BodyShare {
    let small = 0
    let large = 0
    return {
      take: (bytes) => {
        const smallBytes = Math.min(bytes, smallBody - small)
        const isSmall = smallBytes > 0 && this.#small.take(orgId, smallBytes) === "taken"
        if (isSmall) small += smallBytes
        const rest = isSmall ? bytes - smallBytes : bytes
        const taken = rest === 0 ? "taken" : this.#large.take(orgId, rest)
        if (taken === "taken") {
          large += rest
          return null
        }
        return taken === "share" ? bodiesLimited : unavailable
      },
      release: () => {
        this.#small.give(orgId, small)
        this.#large.give(orgId, large)
        small = 0
        large = 0
      }
    }
  }
}
