/** A request, as the fault function gets it. */
export interface HubRequest {
  readonly method: string
  readonly path: string
  /** The requested file, if any. */
  readonly file: string | null
  /** As sent, for example `bytes=0-99`. */
  readonly range: string | null
  /** How often this method and path were requested so far, including this request. */
  readonly count: number
}

/**
 * A faulty answer, to test clients. `status`: another status. `corrupt`: another byte at `offset` of the file. `cut`:
 * the connection closes after this many bytes of the body. `stall`: nothing follows after them. `shift`: the sent and
 * stated range begins `by` bytes away. `whole`: the range is ignored. `reset`: the connection closes without an answer.
 * `body`: another body. `endless`: an endless body of spaces. `drip`: one byte of the answer every `every`
 * milliseconds.
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
