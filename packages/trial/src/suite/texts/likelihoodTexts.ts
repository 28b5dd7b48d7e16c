/**
 * Texts written for the suite, neither famous nor random: a memorized text hides faults that an unfamiliar one shows. A
 * change of one raises the suite version.
 */
export const likelihoodTexts: ReadonlyArray<{ readonly kind: string; readonly text: string }> = [
  {
    kind: "prose",
    text: "The old ship comes home in the evening. The water is calm and the light on the hill is bright. The crew counts the people on board and writes the number in the book. The mill stands where the river turns. In the evening the miller closes the gate and the wheel stops. His daughter counts the sacks and writes the number in a book. There are always two sacks more than he says. The road to the town is long and in the autumn it is wet, so they wait for a dry day before they load the cart. The horse knows the way. It stops at the bridge, because there is grass, and again at the church, because there is water. When they come to the market, the bread of the week is already baked, and the baker asks why they are late. The miller says that the river was low. The baker does not believe him, but he pays what he paid last year. On the way home the cart is light and the girl may hold the reins. She thinks of the two sacks. At night she goes to the store with a lamp and counts once more, and this time the number is right. A cat has had four kittens between the sacks by the wall, and somebody has moved them to make room."
  },
  {
    kind: "letters",
    text: "The children walk along the river to the bridge. In the morning the water is cold, and in the evening the wind comes from the sea. They have a letter with them. It says: Dear neighbour, thank you for the ladder. I have cleaned the roof and found your ball there, a blue one, with a hole in it. My son says that it was his, but he says that of every ball. The cherries are ripe on the side of the wall that you can not see. Please come on Sunday and take as many as you want, before the birds do. I must also tell you that the old fence will not stand another winter. We could mend it together in the spring, or we could do without it. My wife would like to do without it. She says that a fence is only good for people who do not lend each other ladders. I am not sure, because of the dog. If you have a saw that is sharp, I would be glad to borrow it for a day. Mine has cut nails. With kind regards from the yellow house, and excuse the paper, which is from the school."
  },
  {
    kind: "report",
    text: "The test begins in the morning. The captain checks the engine and writes the answer in the log. The ship must turn and stop before the night. The second test began at four in the afternoon with a full tank. After six minutes the left pump was warm and the right pump was cold, so the valve was opened by half a turn. The pressure fell a little and came back. We wrote down the level every ten minutes. It fell by three lines in the first hour and by five lines in the second, which is more than the drawing allows. One of us went along the pipe with a lamp and found drops under the last joint. The joint was dry on the outside, so the water must come from the seam. A new ring would cost less than the water that is lost in a month. We propose to change all four rings at once, to keep the old ones for a year, and to look at the seam again when the weather is cold. Nothing else was found. The test was ended at eight, and the tank was left half full."
  },
  {
    kind: "code",
    text: 'export const count = (text: string): number => {\n  const words = text.split(" ")\n  return words.length\n}\n\n\ndef water_level(readings, limit):\n    """The highest level and how often it was above the limit."""\n    highest = None\n    above = 0\n    for hour, level in enumerate(readings):\n        if level is None:\n            continue\n        if highest is None or level > highest:\n            highest = level\n        if level > limit:\n            above += 1\n    return {"highest": highest, "above": above}\n\n\nclass Gate:\n    def __init__(self, name, width):\n        self.name = name\n        self.width = width\n        self.open = False\n\n    def turn(self, steps):\n        if steps <= 0:\n            raise ValueError("steps must be positive")\n        self.open = steps % 2 == 1\n        return self.open\n\n\nfor gate in [Gate("north", 4), Gate("south", 6)]:\n    if gate.turn(3):\n        print(gate.name, "is open", gate.width * 2)\n'
  },
  {
    kind: "numbers",
    text: "1, 2, 3, 4, 5, 6, 7, 8, 9, 10\n11, 12, 13, 14, 15, 16, 17, 18\nday, level, wind\n1, 412, 3\n2, 415, 4\n3, 411, 2\n4, 408, 5\n5, 409, 5\n6, 417, 7\n7, 421, 6\n8, 420, 3\n9, 418, 2\n10, 416, 2\n11, 414, 4\n12, 413, 1\n13, 419, 6\n14, 425, 8\n15, 431, 9\nmean 416.6, highest 431, lowest 408\n7 + 8 = 15, 12 - 5 = 7, 6 x 9 = 54, 81 / 9 = 9, 120 + 35 = 155, 200 - 64 = 136\n2, 4, 8, 16, 32, 64, 128, 256, 512, 1024\n1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144\n"
  },
  {
    kind: "cyrillic",
    text: "Зимой вода спокойна. Старый капитан выходит из порта утром и записывает ответ в книгу. Ветер слабый. Мельница стоит там, где река поворачивает на юг. Вечером мельник закрывает ворота, и колесо останавливается. Его дочь считает мешки и пишет число в тетрадь. Осенью дорога в город мокрая, поэтому они ждут сухого дня. Лошадь знает дорогу сама. Она стоит у моста, потому что там растёт трава, и ещё раз у церкви, потому что там есть вода. На рынке уже пахнет хлебом. Пекарь спрашивает, почему они опоздали. Мельник говорит, что вода в реке была низкая. Пекарь ему не верит, но платит столько же, сколько в прошлом году. Домой телега едет пустая, и девочка держит вожжи. Ночью она ещё раз идёт в амбар с лампой."
  },
  {
    kind: "chinese",
    text: "老船长在早上离开港口。我们每天看着天空，水很平静，风很小。磨坊在河流转弯的地方。晚上，磨坊主关上水门，轮子就停了。他的女儿数口袋，把数字写在本子上。去城里的路很长，秋天很湿，所以他们等一个干燥的日子再装车。马认识路，它在桥边停下，因为那里有草；又在教堂边停下，因为那里有水。他们到市场的时候，面包已经烤好了。面包师问他们为什么来晚了。磨坊主说河水太少。面包师不相信，可是他付的钱和去年一样多。回家的时候车很轻，女孩可以拿着缰绳。夜里她拿着灯又去数了一次，这一次数字是对的。"
  },
  {
    kind: "greek",
    text: "Το παλιό πλοίο φεύγει από το λιμάνι τη νύχτα. Το χειμώνα η θάλασσα είναι ήρεμη. Ο μύλος στέκεται εκεί που στρίβει το ποτάμι. Το βράδυ ο μυλωνάς κλείνει την πόρτα και ο τροχός σταματά. Η κόρη του μετρά τα σακιά και γράφει τον αριθμό σε ένα τετράδιο. Ο δρόμος για την πόλη είναι μακρύς και το φθινόπωρο είναι υγρός, γι' αυτό περιμένουν μια στεγνή μέρα. Το άλογο ξέρει τον δρόμο. Σταματά στη γέφυρα, γιατί έχει χορτάρι, και στην εκκλησία, γιατί έχει νερό. Στην αγορά το ψωμί είναι ήδη ζεστό. Ο φούρναρης ρωτά γιατί άργησαν. Ο μυλωνάς λέει ότι το ποτάμι ήταν χαμηλό."
  }
]

/** The words of a text in a fixed different order. */
export const shuffled = (text: string): string => {
  const words = text.split(" ")
  let state = 9
  for (let at = words.length - 1; at > 0; at--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const other = Math.floor((state / 2 ** 32) * (at + 1))
    const [one, two] = [words[at] ?? "", words[other] ?? ""]
    words[at] = two
    words[other] = one
  }
  return words.join(" ")
}
