import { HubUnavailable } from "../failures.ts"

export interface ResponseHead {
  readonly status: number
  readonly headers: Headers
}

/** What comes before the body, up to the empty line. */
export const parseHead = (text: string): ResponseHead => {
  const [first = "", ...lines] = text.split("\r\n")
  const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(first)?.[1]
  if (status === undefined) throw new HubUnavailable({ message: "The model hub does not speak HTTP/1.1." })
  const headers = new Headers()
  for (const line of lines) {
    const [, name, value = ""] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
    // Whatever is no header is none of ours.
    if (name !== undefined && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)) headers.set(name, value)
  }
  return { status: Number(status), headers }
}

/** Whether it can be sent as it is: raw in a request, a line break would begin another header, or another request. */
export const isHeader = (name: string, value: string): boolean => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)

/** Bytes of the body, where the head states them; null where the end of the connection does, or pieces that state their own. */
export const lengthOf = (head: ResponseHead): number | null => {
  const text = head.headers.get("content-length")
  return text !== null && /^\d{1,15}$/.test(text) && !head.headers.has("transfer-encoding") ? Number(text) : null
}
