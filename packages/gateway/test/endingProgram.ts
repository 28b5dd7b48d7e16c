import { encodeFrame, makeFrameReader, readyFrame } from "../src/vocabulary/frames.ts"
import { decodeQuestion, makeLargeBodyReader } from "../src/vocabulary/largeBody.ts"

// A process for large bodies that ends or hangs on some of them. On `end once` it ends unless it is new, and on every
// check for which it must parse the body.

const answer = makeLargeBodyReader()
let count = 0

for (const part of encodeFrame(readyFrame)) process.stdout.write(part)

process.stdin.on(
  "data",
  makeFrameReader(({ body, head }) => {
    const question = decodeQuestion(head)
    if (body.includes("end always") || (body.includes("end once") && count > 0)) process.exit(1)
    if (body.includes("hang")) return
    if (question.task._tag === "Check" && !question.isHeld) process.exit(1)
    count++
    for (const part of encodeFrame(answer(question, body))) process.stdout.write(part)
  })
)
