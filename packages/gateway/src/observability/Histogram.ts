/** An example observation of a bucket: its request and time. */
interface Exemplar {
  readonly id: string
  readonly value: number
  /** Unix milliseconds. */
  readonly at: number
}

const bound = (value: number) => (value === Number.POSITIVE_INFINITY ? "+Inf" : String(value))

/** Counts observations in buckets of plain numbers. Text is formatted only on demand. */
export class Histogram {
  readonly #bounds: ReadonlyArray<number>
  readonly #counts: Array<number>
  readonly #exemplars: Array<Exemplar | undefined>
  #sum = 0

  /** `bounds`: the upper bounds of the buckets, ascending. */
  constructor(bounds: ReadonlyArray<number>) {
    this.#bounds = [...bounds, Number.POSITIVE_INFINITY]
    this.#counts = this.#bounds.map(() => 0)
    this.#exemplars = this.#bounds.map(() => undefined)
  }

  observe(value: number, id?: string): void {
    let bucket = 0
    while (value > (this.#bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket++
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#sum += value
    // Keeps the first observation of each bucket and replaces it occasionally, so that tokens rarely allocate an
    // object.
    const exemplar = this.#exemplars[bucket]
    if (id !== undefined && (exemplar === undefined || (this.#counts[bucket] ?? 0) % 16 === 0)) this.#exemplars[bucket] = { id, value, at: Date.now() }
  }

  /** The lines of the text format. Exemplars exist only in OpenMetrics. */
  lines(name: string, labels: string, openMetrics: boolean): ReadonlyArray<string> {
    const before = labels === "" ? "" : `${labels},`
    const braced = labels === "" ? "" : `{${labels}}`
    let total = 0
    const buckets = this.#bounds.map((limit, index) => {
      total += this.#counts[index] ?? 0
      const exemplar = openMetrics ? this.#exemplars[index] : undefined
      const suffix = exemplar === undefined ? "" : ` # {request_id="${exemplar.id}"} ${exemplar.value} ${exemplar.at / 1_000}`
      return `${name}_bucket{${before}le="${bound(limit)}"} ${total}${suffix}`
    })
    return [...buckets, `${name}_sum${braced} ${this.#sum}`, `${name}_count${braced} ${total}`]
  }
}
