import { encodeFrame, makeFrameReader, readyFrame } from "./frames.ts"
import { decodeQuestion, makeLargeBodyReader } from "./largeBody.ts"

// The process that parses large bodies, one after the other. `LargeBodyProcess` starts it with a small heap, an empty
// environment, and no permission except to read its own code.

const answer = makeLargeBodyReader()

for (const part of encodeFrame(readyFrame)) process.stdout.write(part)

process.stdin.on(
  "data",
  makeFrameReader(({ body, head }) => {
    for (const part of encodeFrame(answer(decodeQuestion(head), body))) process.stdout.write(part)
  })
)
