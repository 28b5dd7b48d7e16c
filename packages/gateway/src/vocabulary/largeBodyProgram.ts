import { encodeFrame, makeFrameReader, readyFrame } from "./frames.ts"
import { decodeQuestion, makeLargeBodyReader } from "./largeBody.ts"

// The process that parses large bodies, one after the other. `LargeBodyProcess` starts it: with little memory, without an environment, and without any permission but to read its program.

const answer = makeLargeBodyReader()

for (const part of encodeFrame(readyFrame)) process.stdout.write(part)

process.stdin.on(
  "data",
  makeFrameReader(({ body, head }) => {
    for (const part of encodeFrame(answer(decodeQuestion(head), body))) process.stdout.write(part)
  })
)
