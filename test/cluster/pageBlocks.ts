import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Schema } from "effect"
import { parse } from "yaml"

export const AnyObject = Schema.Record(Schema.String, Schema.Unknown)
const decodeBlock = Schema.decodeUnknownSync(AnyObject)

/** The YAML blocks of a how-to page, those in lists too. */
export const pageBlocks = async (page: string) => {
  const text = await readFile(join(import.meta.dirname, "../../docs/how-to", page), "utf8")
  return [...text.matchAll(/^( *)```yaml\n([\s\S]*?)^ *```$/gmu)].map(([, indent = "", block = ""]) =>
    decodeBlock(parse(block.replaceAll(new RegExp(`^${indent}`, "gmu"), "")))
  )
}
