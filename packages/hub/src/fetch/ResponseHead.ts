import { HubUnavailable } from "../failures.ts"

export interface ResponseHead {
  readonly status: number
  readonly headers: Headers
}

/** Parses the head of a response, up to the empty line. */
export const parseHead = (text: string): ResponseHead => {
  const [first = "", ...lines] = text.split("\r\n")
  const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(first)?.[1]
  if (status === undefined) throw new HubUnavailable({ message: "The model hub does not speak HTTP/1.1." })
  const headers = new Headers()
  for (const line of lines) {
    const [, name, value = ""] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
    // Invalid header lines are ignored.
    if (name !== undefined && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)) headers.set(name, value)
  }
  return { status: Number(status), headers }
}

/** Whether a header can be sent unchanged: a line break would start another header or request. */
export const isHeader = (name: string, value: string): boolean => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)

/** Length of the body from the head; null if the body ends with the connection or is chunked. */
export const lengthOf = (head: ResponseHead): number | null => {
  const text = head.headers.get("content-length")
  return text !== null && /^\d{1,15}$/.test(text) && !head.headers.has("transfer-encoding") ? Number(text) : null
}
