import { assert, describe, it } from "@effect/vitest"
import { ResponseReader } from "../src/engine/ResponseReader.ts"

/** What is read of an answer that comes in these pieces; `broken` where it is none. */
const read = (pieces: ReadonlyArray<Buffer>) => {
  const seen = { status: 0, body: "" }
  const reader = new ResponseReader({
    head: (status) => {
      seen.status = status
    },
    data: (bytes) => {
      seen.body += bytes.toString("latin1")
    }
  })
  const isRead = pieces.every((piece) => reader.push(piece))
  return isRead ? { ...seen, whole: reader.done, keeps: reader.keeps, wholeOnceClosed: reader.close() } : "broken"
}
const readText = (text: string) => read([Buffer.from(text, "latin1")])
const head = (...lines: ReadonlyArray<string>) => ["HTTP/1.1 200 OK", ...lines, "", ""].join("\r\n")
const chunked = head("Transfer-Encoding: chunked")

describe("an answer of HTTP/1.1", () => {
  const answers: ReadonlyArray<readonly [what: string, text: string, status: number, body: string, keeps: number | null, whole: boolean]> = [
    ["of a known length", `${head("Content-Length: 11")}hello\r\n\r\nyo`, 200, "hello\r\n\r\nyo", null, true],
    ["without a body", head("content-length: 0"), 200, "", null, true],
    ["of no content", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", null, true],
    ["in chunks", `${chunked}5\r\nhello\r\nA;name="va;lue"\r\n, wörld!\r\n\r\n0\r\n\r\n`, 200, "hello, wörld!\r\n", null, true],
    ["in chunks, with a trailer", `${chunked}1\r\na\r\n000\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n`, 200, "a", null, true],
    [
      "after others that announce it",
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${head("content-length: 1")}a`,
      200,
      "a",
      null,
      true
    ],
    ["that says that it is the last", `${head("Connection: Close", "content-length: 1")}a`, 200, "a", 0, true],
    [
      "that says how long the connection is kept",
      `${head("Connection: keep-alive", "Keep-Alive: max=9, timeout=5", "content-length: 1")}a`,
      200,
      "a",
      5_000,
      true
    ],
    ["that ends with its connection", `${head("content-type: x")}a\r\n\r\nb`, 200, "a\r\n\r\nb", 0, false],
    ["of HTTP/1.0", "HTTP/1.0 503 Busy\r\ncontent-length: 1\r\n\r\na", 503, "a", 0, true],
    ["without a reason", "HTTP/1.1 404\r\ncontent-length: 2\r\n\r\nno", 404, "no", null, true]
  ]
  for (const [what, text, status, body, keeps, whole] of answers) {
    it(`${what} is the same wherever it is split`, () => {
      const bytes = Buffer.from(text, "latin1")
      const expected = { status, body, whole, keeps, wholeOnceClosed: true }
      assert.deepStrictEqual(read([bytes]), expected)
      assert.deepStrictEqual(read(Array.from(bytes, (byte) => Buffer.from([byte]))), expected)
      for (let at = 1; at < bytes.length; at++) assert.deepStrictEqual(read([bytes.subarray(0, at), bytes.subarray(at)]), expected)
    })
  }

  it("that breaks off anywhere is not whole", () => {
    for (const text of [`${head("content-length: 5")}hello`, `${chunked}5\r\nhello\r\n0\r\n\r\n`]) {
      for (let at = 0; at < text.length; at++) assert.deepInclude(readText(text.slice(0, at)), { whole: false, wholeOnceClosed: false }, `${at}`)
    }
  })

  const broken: ReadonlyArray<readonly [what: string, text: string]> = [
    ["two lengths", head("content-length: 1", "content-length: 2")],
    ["a length and chunks", head("content-length: 1", "transfer-encoding: chunked")],
    ["chunks twice", head("transfer-encoding: chunked", "transfer-encoding: chunked")],
    ["an encoding besides chunks", head("transfer-encoding: gzip, chunked")],
    ["a length with a sign", head("content-length: +1")],
    ["a length that is no number", head("content-length: 1,1")],
    ["a space before a colon", head("content-length : 1")],
    ["a line that goes on", head("x: a", " content-length: 1")],
    ["a line without a colon", head("nonsense")],
    ["another protocol", "SSH-2.0-OpenSSH\r\n\r\n"],
    ["a protocol to switch to", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
    ["a head without end", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(17_000)}`],
    ["a chunk without a size", `${chunked}\r\na`],
    ["a chunk whose size is no number", `${chunked}1x\r\na\r\n`],
    ["a chunk of a negative size", `${chunked}-1\r\na\r\n`],
    ["a chunk larger than it says", `${chunked}1\r\nab\r\n0\r\n\r\n`],
    ["a chunk beyond all numbers", `${chunked}${"f".repeat(20)}\r\n`],
    ["the end of a chunk's line without its first half", `${chunked}1\na\r\n`],
    ["an endless line before a chunk", `${chunked}1;${"x".repeat(2_000)}`],
    ["an endless trailer", `${chunked}0\r\n${"x: y\r\n".repeat(3_000)}`],
    ["more than one answer", `${head("content-length: 1")}aHTTP/1.1`]
  ]
  for (const [what, text] of broken) {
    it(`with ${what} is none`, () => {
      const bytes = Buffer.from(text, "latin1")
      assert.strictEqual(read([bytes]), "broken")
      assert.strictEqual(read([bytes.subarray(0, 60), bytes.subarray(60)]), "broken")
    })
  }
})
