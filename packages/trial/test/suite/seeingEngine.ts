import { createServer } from "node:http"
import { inflateSync } from "node:zlib"
import { Effect, Schema } from "effect"
import { listenLocally } from "../listenLocally.ts"

/** What a seeing engine may do wrong. */
export type SightFault =
  | "blind"
  | "takes no JPEG"
  | "first image only"
  | "images in front"
  | "images in any order"
  | "names both images"
  | "does not count images"

/** Brightness and colour of a picture's squares of 8 pixels. */
interface Seen {
  readonly side: number
  readonly at: (x: number, y: number) => readonly [red: number, green: number, blue: number]
}

const readPng = (bytes: Buffer): Seen => {
  const side = bytes.readUInt32BE(16)
  const data: Array<Buffer> = []
  for (let at = 8; at < bytes.length; at += 12 + bytes.readUInt32BE(at)) {
    if (bytes.toString("latin1", at + 4, at + 8) === "IDAT") data.push(bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at)))
  }
  const rows = inflateSync(Buffer.concat(data))
  const value = (x: number, y: number, colour: number) => rows[y * (1 + side * 3) + 1 + x * 3 + colour] ?? 0
  return { side, at: (x, y) => [value(x, y, 0), value(x, y, 1), value(x, y, 2)] }
}

/** A table of Huffman codes, as bits. */
const codesOf = (table: Buffer): ReadonlyMap<string, number> => {
  const codes = new Map<string, number>()
  let code = 0
  let next = 17
  for (let length = 1; length <= 16; length++, code *= 2) {
    for (let count = table[length] ?? 0; count > 0; count--) codes.set((code++).toString(2).padStart(length, "0"), table[next++] ?? 0)
  }
  return codes
}

/** Reads a baseline JPEG of three colours without subsampling, each block by its mean. */
const readJpeg = (bytes: Buffer): Seen => {
  const tables = new Map<number, ReadonlyMap<string, number>>()
  let [side, step, at] = [0, 1, 2]
  for (; bytes[at + 1] !== 0xda; at += 2 + bytes.readUInt16BE(at + 2)) {
    if (bytes[at + 1] === 0xdb) step = bytes[at + 5] ?? 1
    if (bytes[at + 1] === 0xc0) side = bytes.readUInt16BE(at + 5)
    if (bytes[at + 1] === 0xc4) tables.set(bytes[at + 4] ?? 0, codesOf(bytes.subarray(at + 4)))
  }
  at += 2 + bytes.readUInt16BE(at + 2)
  let bits = ""
  for (; at < bytes.length - 2; at++) {
    bits += (bytes[at] ?? 0).toString(2).padStart(8, "0")
    if (bytes[at] === 0xff) at++
  }
  let read = 0
  const symbol = (table: number): number => {
    for (let length = 1; length <= 16; length++) {
      const symbol = tables.get(table)?.get(bits.slice(read, read + length))
      if (symbol === undefined) continue
      read += length
      return symbol
    }
    throw new Error("no such code")
  }
  const means = [0, 0, 0]
  const blocks = Array.from({ length: (side / 8) ** 2 }, () => {
    for (let colour = 0; colour < 3; colour++) {
      const length = symbol(0x00)
      const value = length === 0 ? 0 : Number.parseInt(bits.slice(read, read + length), 2)
      read += length
      means[colour] = (means[colour] ?? 0) + (length > 0 && value < 2 ** (length - 1) ? value - 2 ** length + 1 : value)
      if (symbol(0x10) !== 0) throw new Error("more than a mean")
    }
    const [light = 0, blue = 0, red = 0] = means.map((mean) => (mean * step) / 8)
    return [light + 128 + 1.402 * red, light + 128 - 0.344 * blue - 0.714 * red, light + 128 + 1.772 * blue] as const
  })
  return { side, at: (x, y) => blocks[Math.floor(y / 8) * (side / 8) + Math.floor(x / 8)] ?? [0, 0, 0] }
}

const isDark = ({ at }: Seen, x: number, y: number) => at(x, y).every((value) => value < 100)

/** The points of each digit, three by five, read row by row. */
const points = ["111101101101111", "010110010010111", "111001111100111", "111001111001111", "101101111001001"].concat(
  ["111100111001111", "111100111101111", "111001010010010", "111101111101111", "111101111001111"].values().toArray()
)

/** The four drawn digits; empty without any. */
const digitsOf = (image: Seen): string => {
  const point = (column: number, row: number) => (isDark(image, 44 + column * 24, 172 + row * 24) ? "1" : "0")
  return Array.from({ length: 4 }, (_, digit) => {
    const drawn = Array.from({ length: 15 }, (_, index) => point(digit * 4 + (index % 3), Math.floor(index / 3))).join("")
    return points.indexOf(drawn)
  })
    .filter((digit) => digit >= 0)
    .join("")
}

const Part = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("image_url"), image_url: Schema.Struct({ url: Schema.String }) })
])
const Body = Schema.Struct({ messages: Schema.Tuple([Schema.Struct({ role: Schema.Literal("user"), content: Schema.Array(Part) })]) })
const decodeBody = Schema.decodeUnknownSync(Schema.fromJsonString(Body))

const see = (url: string, fault: SightFault | undefined): ReadonlyArray<Seen> => {
  const bytes = Buffer.from(url.slice(url.indexOf(",") + 1), "base64")
  if (fault === "blind" || (fault === "takes no JPEG" && url.startsWith("data:image/jpeg"))) return []
  return [url.startsWith("data:image/jpeg") ? readJpeg(bytes) : readPng(bytes)]
}

/** An engine that decodes the images of a question and answers from their pixels, as well as its fault allows. */
export const serveSeeingEngine = Effect.fnUntraced(function* (fault?: SightFault, worded: (shows: string, other: string) => string = (shows) => shows) {
  const answer = (text: string) => {
    const [{ content }] = decodeBody(text).messages
    const question = content.map((part) => (part.type === "text" ? part.text : "")).join(" ")
    const images = content.flatMap((part) => (part.type === "image_url" ? see(part.image_url.url, fault) : []))
    const [first] = images
    const [red = 0, green = 0, blue = 0] = first?.at(8, 8) ?? []
    const seenImages = fault === "first image only" ? images.slice(0, 1) : fault === "images in front" ? images.toReversed() : images
    const shows = seenImages.findIndex((each) => digitsOf(each) !== "")
    const names = ["first", "second"]
    const [name, other] = [names[shows], names[1 - shows]]
    const order =
      fault === "images in any order"
        ? "second"
        : fault === "names both images"
          ? "The first and the second image show digits"
          : name === undefined || other === undefined
            ? "neither"
            : worded(name, other)
    const answerText = question.includes("four digits")
      ? first === undefined
        ? "I see none"
        : digitsOf(first)
      : question.includes("first or the second")
        ? order
        : // An engine that sees no image may still guess.
          first === undefined || red > Math.max(green, blue)
          ? "Red"
          : "Blue"
    const tokens = fault === "does not count images" ? 0 : images.reduce((sum, { side }) => sum + (side / 28) ** 2, 0)
    const usage = { prompt_tokens: 20 + tokens, completion_tokens: 1, total_tokens: 21 + tokens }
    return { choices: [{ index: 0, message: { role: "assistant", content: answerText }, finish_reason: "stop" }], usage }
  }
  const server = createServer((request, response) => {
    let text = ""
    request.on("data", (part) => (text += part))
    request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer(text))))
  })
  return yield* listenLocally(server)
})
