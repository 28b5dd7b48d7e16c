import { describe, expect, it } from "vitest"
import { TextStream } from "../src/TextStream.ts"

const pieces = (text: string, stops: ReadonlyArray<string> = []) => {
  const stream = new TextStream(stops)
  const sent: Array<string> = []
  for (const byte of Buffer.from(text, "utf8")) {
    const { stop, text: certain } = stream.push(Uint8Array.of(byte))
    sent.push(certain)
    if (stop !== null) return { sent, rest: "", stop }
  }
  return { sent, rest: stream.finish(), stop: null }
}

describe("text from token bytes", () => {
  it("contains a character with its last byte", () => {
    expect(pieces("a🚢é漢").sent).toEqual(["a", "", "", "", "🚢", "", "é", "", "", "漢"])
  })

  it("drops incomplete characters and marks invalid bytes", () => {
    const stream = new TextStream([])
    expect(stream.push(Uint8Array.of(0xf0, 0x9f, 0x9a)).text).toBe("")
    expect(stream.finish()).toBe("")
    expect(new TextStream([]).push(Uint8Array.of(0xff, 0x41)).text).toBe("\uFFFDA")
  })

  it("is held back if it may become a stop string, and sent if it does not", () => {
    expect(pieces("one, two", [", three"])).toEqual({ sent: ["o", "n", "e", "", "", "", ", tw", "o"], rest: "", stop: null })
    expect(pieces("aaa", ["aaab"]).sent.join("")).toBe("")
    expect(pieces("aaa", ["aaab"]).rest).toBe("aaa")
  })

  it("ends before the first stop string", () => {
    expect(pieces("count 1, 2, 3", ["3", ", 2"])).toMatchObject({ stop: ", 2" })
    expect(pieces("count 1, 2, 3", ["3", ", 2"]).sent.join("")).toBe("count 1")
  })
})
