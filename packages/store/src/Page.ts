/** Where a page begins: after the row of that time and id, in the order newest first. */
export interface Position {
  /** Unix milliseconds. */
  readonly createdAt: number
  readonly id: string
}

/** One page of a list, newest first; `next` is where the following one begins. */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly next: Position | null
}

export interface PageRequest {
  /** 1 to 200. */
  readonly limit: number
  readonly after: Position | null
}
