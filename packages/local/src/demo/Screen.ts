const plain = process.stdout.isTTY !== true || process.env.NO_COLOR !== undefined

const paint = (code: number) => (text: string) => (plain ? text : `\u001b[${code}m${text}\u001b[0m`)
export const bold = paint(1)
export const dim = paint(2)
export const green = paint(32)
export const red = paint(31)
export const yellow = paint(33)

export const say = (text = ""): void => {
  process.stdout.write(`${text}\n`)
}

let number = 0
export const heading = (text: string): void => {
  number++
  say()
  say(bold(`${number}. ${text}`))
}

export const row = (name: string, value: string): void => say(`   ${dim(name.padEnd(16))} ${value}`)

/** A line that is overwritten until it is finished. Outside a terminal only the final text is printed. */
export class LiveLine {
  update(text: string): void {
    if (!plain) process.stdout.write(`\r\u001b[2K   ${text}`)
  }

  finish(text: string): void {
    process.stdout.write(plain ? `   ${text}\n` : `\r\u001b[2K   ${text}\n`)
  }
}

export const bytes = (count: number | null): string =>
  count === null
    ? "unknown"
    : count < 2 ** 20
      ? `${(count / 1024).toFixed(1)} KiB`
      : count < 2 ** 30
        ? `${(count / 2 ** 20).toFixed(1)} MiB`
        : `${(count / 2 ** 30).toFixed(2)} GiB`

export const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(2)} s`
