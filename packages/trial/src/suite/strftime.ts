const months = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
const two = (number: number): string => String(number).padStart(2, "0")

const directives: Readonly<Record<string, (date: Date) => string>> = {
  "%Y": (date) => String(date.getUTCFullYear()),
  "%y": (date) => two(date.getUTCFullYear() % 100),
  "%m": (date) => two(date.getUTCMonth() + 1),
  "%-m": (date) => String(date.getUTCMonth() + 1),
  "%d": (date) => two(date.getUTCDate()),
  "%-d": (date) => String(date.getUTCDate()),
  "%B": (date) => months[date.getUTCMonth()] ?? "",
  "%b": (date) => (months[date.getUTCMonth()] ?? "").slice(0, 3),
  "%A": (date) => weekdays[date.getUTCDay()] ?? "",
  "%a": (date) => (weekdays[date.getUTCDay()] ?? "").slice(0, 3),
  "%%": () => "%"
}

/**
 * Formats the UTC day of the time (Unix milliseconds) as Python does. Throws if the format has a directive for less
 * than a day, or an unsupported directive.
 */
export const strftime = (format: string, time: number): string => {
  const date = new Date(time)
  return format.replace(/%-?.?/gs, (directive) => {
    const write = directives[directive]
    if (write === undefined) throw new Error(`${directive} is not written`)
    return write(date)
  })
}
