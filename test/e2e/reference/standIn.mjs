#!/usr/bin/env node
// Stands in for a Python with torch and transformers: `standIn.mjs -c PROGRAM FOLDER --memory-bytes=N --request=REQUEST`.
// Answers with what Transformers computed for `tiny-chat`, whichever files are in the folder.
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

const [, program = "", folder = "", , request = ""] = process.argv.slice(2)
if (!program.includes("import transformers")) throw new Error("this is not the program of references")
if (!existsSync(join(folder, "model.safetensors"))) throw new Error("the folder has no weights")
const { sequences } = JSON.parse(request.slice("--request=".length))
const known = JSON.parse(readFileSync(new URL("../../mutants/tiny-chat.reference.json", import.meta.url), "utf8"))
const logprobs = sequences.map((ids) => {
  const found = known.sequences.find((sequence) => JSON.stringify(sequence.ids) === JSON.stringify(ids))
  if (found === undefined) throw new Error(`there is no result for ${ids.length} tokens from ${ids[0]} on`)
  return found.logprobs
})
const { torch, transformers } = known
process.stderr.write("a warning of a library\n")
process.stdout.write(`${JSON.stringify({ logprobs, continuations: known.continuations.map(({ ids }) => ids), transformers, torch })}\n`)
