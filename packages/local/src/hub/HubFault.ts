/** A request as a fault sees it. */
export interface HubRequest {
  readonly method: string
  readonly path: string
  /** The file that it is for, where it is for one. */
  readonly file: string | null
  /** As sent, for example `bytes=0-99`. */
  readonly range: string | null
  /** How often this method and path have been asked for, this time counted: 1 the first time. */
  readonly count: number
}

/**
 * What goes wrong with an answer, to test what clients make of it.
 * `status`: this status instead. `corrupt`: the file's byte at `offset` is another. `cut`: the connection ends after so many bytes of the body, `stall`: nothing
 * more comes after them. `shift`: a range that begins `by` bytes elsewhere is sent and stated. `whole`: the range is ignored. `reset`: the connection ends without an
 * answer. `body`: this body instead. `endless`: spaces without end. `drip`: the answer, one byte each `every` milliseconds.
 */
export type HubFault =
  | { readonly kind: "status"; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | { readonly kind: "corrupt"; readonly offset: number }
  | { readonly kind: "cut"; readonly after: number }
  | { readonly kind: "stall"; readonly after: number }
  | { readonly kind: "shift"; readonly by: number }
  | { readonly kind: "whole" }
  | { readonly kind: "reset" }
  | { readonly kind: "body"; readonly body: Uint8Array; readonly headers?: Readonly<Record<string, string>> }
  | { readonly kind: "endless" }
  | { readonly kind: "drip"; readonly every: number }
