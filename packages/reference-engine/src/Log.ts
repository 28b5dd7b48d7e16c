const two = (value: number) => String(value).padStart(2, "0")

const line = (level: "INFO" | "WARNING" | "ERROR", source: string, text: string) => {
  const now = new Date()
  const date = `${two(now.getMonth() + 1)}-${two(now.getDate())} ${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}`
  process.stdout.write(`(EngineCore pid=${process.pid}) ${level} ${date} [${source}] ${text}\n`)
}

/** Lines on stdout in the format of vLLM, so that one parser reads both. Prompts and answers are never logged. */
export const log = {
  info: (source: string, text: string) => line("INFO", source, text),
  error: (source: string, text: string) => line("ERROR", source, text)
}

/** Bytes as GiB with nine decimals, which is exact to a byte. Models of a megabyte need this precision. */
export const gib = (bytes: number) => (bytes / 1024 ** 3).toFixed(9)

/** A whole number with thousands separators, as vLLM prints token counts. */
export const grouped = (value: number) => String(value).replace(/\B(?=(\d{3})+$)/g, ",")
