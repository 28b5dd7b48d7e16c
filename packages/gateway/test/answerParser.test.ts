import { assert, describe, it } from "@effect/vitest"
import { AnswerParser } from "../src/engine/AnswerParser.ts"

interface Read {
  readonly status: number
  readonly body: string
  readonly over: boolean
  readonly keepAlive: boolean
}

/** What is read of an answer that comes in pieces of so many bytes; null where it is not taken for one. */
const readIn = (text: string, size: number): Read | null => {
  const parser = new AnswerParser()
  const bytes = Buffer.from(text, "latin1")
  let body = ""
  for (let at = 0; at < bytes.length; at += size) {
    const part = parser.push(bytes.subarray(at, at + size))
    if (part === false) return null
    body += part.toString("latin1")
  }
  return { status: parser.status, body, over: parser.over, keepAlive: parser.keepAlive }
}

const right: ReadonlyArray<readonly [promise: string, text: string, read: Read]> = [
  ["of a told length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", { status: 200, body: "hello", over: true, keepAlive: true }],
  ["of no length", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", { status: 200, body: "", over: true, keepAlive: true }],
  ["without a body", "HTTP/1.1 204 No Content\r\n\r\n", { status: 204, body: "", over: true, keepAlive: true }],
  [
    "in chunks",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1b;x=y\r\n, this is a longer chunk.\n\n\r\n0\r\n\r\n",
    { status: 200, body: "hello, this is a longer chunk.\n\n", over: true, keepAlive: true }
  ],
  [
    "in chunks with trailers",
    "HTTP/1.1 500 \r\ntransfer-encoding: chunked\r\n\r\n2\r\n\r\n\r\n0\r\nx-took: 1\r\ny: 2\r\n\r\n",
    { status: 500, body: "\r\n", over: true, keepAlive: true }
  ],
  ["until the connection ends", "HTTP/1.1 200 OK\r\nserver: x\r\n\r\nall of it", { status: 200, body: "all of it", over: false, keepAlive: false }],
  ["that is the last", "HTTP/1.1 503 Busy\r\nConnection: Close\r\nContent-Length: 1\r\n\r\nx", { status: 503, body: "x", over: true, keepAlive: false }],
  ["of the older protocol", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", { status: 200, body: "x", over: true, keepAlive: false }],
  [
    "that another head goes before",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
    { status: 200, body: "hi", over: true, keepAlive: true }
  ]
]

const wrong: ReadonlyArray<readonly [promise: string, text: string]> = [
  ["no HTTP", "hello there\r\n\r\n"],
  ["another protocol", "HTTP/1.1 101 Switching\r\n\r\n"],
  ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxy"],
  ["a length that is none", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"],
  ["an encoding that is not known", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n"],
  ["a chunk of no size", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nhello\r\n"],
  ["a chunk that is longer than its size", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n"],
  ["more than one answer", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\n\r\n"],
  ["an endless head", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(70_000)}`],
  ["an endless line", `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;${"y".repeat(5_000)}`]
]

describe("an engine's answer", () => {
  for (const [promise, text, read] of right) {
    it(`${promise} is read the same in pieces of any size`, () => {
      for (const size of [1, 2, 3, 7, 64, text.length]) assert.deepStrictEqual(readIn(text, size), read, `${size} bytes at once`)
    })
  }
  for (const [promise, text] of wrong) {
    it(`is not one: ${promise}`, () => {
      for (const size of [1, 5, text.length]) assert.isNull(readIn(text, size), `${size} bytes at once`)
    })
  }
})
