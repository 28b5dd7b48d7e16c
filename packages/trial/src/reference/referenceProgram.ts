import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** The path of the program that computes references. */
export const referencePath = fileURLToPath(new URL("../../reference/reference.py", import.meta.url))

/** The text of the program, for an interpreter that has no file of it. */
export const referenceProgram = readFileSync(referencePath, "utf8")
