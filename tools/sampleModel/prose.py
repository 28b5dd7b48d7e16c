"""Ordinary prose: sentences by hand, and templates that give many others. All of it was written for this project."""

import functools
import os
import subprocess

from facts import ADJECTIVES, NAMES, NOUNS, PLACES

DOCUMENTS_AT = "ef27f3ea1c1f4352335d526940dd53ed3e2af23f"
"""The commit whose README and documents are read as prose: the project's own words of then."""

BY_HAND = """The ship leaves the harbour in the morning. The crew checks every line before the wind comes.
A small boat follows the river to the sea. The water is calm and the sky is clear.
The captain reads the chart and writes the course in the log. The engine runs well and the speed is steady.
We measure the depth of the water with a long line. The number is written down and checked again.
The light on the hill shows the way home. When the fog comes, the bell rings every minute.
A good model gives the same answer to the same question. We test it before it carries any traffic.
The test is simple. Ask a question, read the answer, count the tokens and write the result.
The north star stands still while the others turn. Sailors have used it to find their way for a thousand years.
The tide rises twice a day. It lifts the ships and fills the harbour, and then it leaves again.
The anchor holds the ship in its place. It is heavy and made of iron.
The cook makes soup with fish and bread. The crew eats together and tells old stories.
A storm is coming from the west. Take in the sails and close the doors.
The map is old but the coast is the same. There are rocks near the island, so keep away from it.
The trial begins at noon. The ship must turn, stop and hold its course before it is accepted.
Each part of the ship is checked by two people. What was measured is written in the book.
The harbour master asks for the name of the ship and the number of people on board.
The rope is strong because it is made of many thin lines. So is a good team.
Birds fly over the water and look for fish. The children count them and laugh.
The moon pulls the water and makes the tide. The sun gives light and warm air.
It takes three days to reach the island and four days to come back against the wind.
The lamp is bright and the glass is clean. Nobody on this coast has lost the way since it was built.
Paper burns, iron rusts and wood rots, but the sea stays the same.
The young sailor learns the knots first. Then he learns the names of the winds.
In the winter the river is frozen and the boats lie on the shore. In the spring they are painted and sail again.
The first ship carries grain and the second ship carries wood. Both of them come from the north.
If the engine stops, the crew raises the sails. If the wind stops, they take the oars.
The answer is written on the last page of the book. Read it slowly and check every word.
She opens the window and hears the sea. The waves are small and the night is quiet.
They built the bridge of stone, so that the river can not carry it away.
The doctor on board has seen many storms and few sick people. Fresh water and good food keep the crew well.
A long voyage needs a good plan. Count the days, count the bread and leave some of both for the way home.
The signal is three short lights and one long light. It means that the ship needs help.
The old fisherman knows the weather by the colour of the evening sky. Red is good, yellow is wind and grey is rain.
At the end of the trial the captain signs the paper, and the ship is ready for the sea.
My grandmother kept bees behind the house. Every autumn she gave a glass of honey to each of her neighbours.
The train was late again, so we sat on our bags and talked about the summer.
Nobody had opened the letter for years. The ink was brown, but each word could still be read.
He bought a second-hand bicycle and painted it green. It was stolen a week later, and he walked to work again.
The library closes at six. If you need more time, ask at the desk and they will keep the book for you.
Rain fell on the roof all night, and in the morning the road had become a small river.
She did not say much at dinner, but she smiled when her brother sang.
A clock that is wrong by an hour is still useful if you know that it is wrong.
The baker begins his work at three, when the rest of the town is asleep.
They planted forty trees along the road. Ten years later the road was cool even in August.
Numbers do not lie, but people choose which numbers to show.
The teacher asked a simple question, and the whole class looked at the floor.
We have a cat that opens doors. It has never learnt to close them.
There was once a miller who had no mill. He carried his stones from village to village.
The market is held on Saturday. You can buy apples, cheese, candles and, with some luck, a good hat.
The machine stopped because of a single grain of sand. It took two days to find it.
Before you repair a thing, write down what it does. After that, write down what it should do.
The bus turns left at the church and stops in front of the school.
I have read this page three times and I still do not know who the murderer is.
The valley is narrow, and in December the sun reaches the houses for less than an hour.
An honest mistake is better than a lucky guess, because you can learn from it.
The violin had belonged to his uncle. He played it badly but every day.
Snow makes a city quiet. Even the dogs walk as if they did not want to wake anyone.
The new road saves ten minutes, but the old one passes the lake.
If the milk is sour, make bread with it. If the bread is hard, make soup.
The engineer drew the bridge on the back of a bill and paid for the coffee.
Two men carried the piano up the stairs. A third one told them how.
The parcel arrived without a name. Inside it there was a single blue shoe.
The garden wall is older than the house. Lizards live between its stones.
What is easy to say can be hard to do, and what is hard to say is often worth saying.
They waited for the ferry until the lamps were lit. Then they went home and tried again the next day.
The report was forty pages long. The only important sentence stood in a footnote.
My father repairs radios. He says that most of them are not broken but lonely.
The river has two names. People on the left side use one, and people on the right side use the other.
You may take any book from the second shelf, but please leave the first one alone.
The orange cat sleeps in the window of the tailor, on the most expensive cloth.
It was so cold that the ink froze, and the clerk wrote with a pencil until March.
The recipe asks for a spoon of salt. It does not say how large the spoon is.
A lighthouse is a simple thing: a tower, a lamp, and somebody who does not fall asleep.
The children built a dam of mud and leaves. By evening the rain had taken it away.
She counted the steps to the top: two hundred and twelve. On the way down there were two hundred and thirteen.
Good tools are quiet. You notice them only when they are missing.
The village has one shop, and the shop has everything except what you need.
When the power failed, the whole street came out of their houses and looked at the stars.
The guide told us that the castle was haunted. He told it in four languages.
The museum keeps a piece of rope that is a thousand years old. It would still hold a boat.
He wrote a letter every Sunday and never posted one of them.
The last bus leaves at ten past eleven. After that you need good shoes.
My neighbour grows tomatoes on the balcony. Last year he had three, and he gave me one.
There is a hole in the fence, and every dog in the street knows it.
The judge read the sentence twice, first for the court and then for herself.
The water in the well is cold and tastes of stone.
A model that was never tested is only an opinion about the future.
The wheel squeaked for a year. When it stopped, everyone asked what had happened.
She sold the boat and bought a field. In spring the field was under water.
The second violin began too early, and the first violin pretended that it was right.
Keep the receipt. One day somebody will ask what you paid, and for what.
Every map leaves something out. The art is to leave out the right things.
The mountain looks near in the evening. It is a day and a half on foot.
They painted the door red so that their uncle would find the house.
The pump brings twenty litres a minute. The leak takes nineteen.
On the first of May the whole school walks to the lake and swims, whatever the weather.
He asked for the time, and she gave him the watch.
The bridge swings a little in the wind. That is how it was built, and that is why it stands.
A word that you have only read is a word that you may not know how to say.
The oldest tree in the park has a number. Nobody remembers who counted them.""".split("\n")

# Other scripts, and how programs and tables look: so that none of their bytes are new to the model.
OTHER = """Das Schiff verlässt am Morgen den Hafen. Der Wind ist schwach, und das Wasser ist ruhig.
Im Winter schläft der Garten, und die Kinder zählen die Tage bis zum Frühling.
Le bateau quitte le port à l'aube. La mer est calme et le ciel est clair.
La vieille carte montre une île qui n'existe plus depuis longtemps.
El barco sale del puerto por la mañana. Mañana será un día de lluvia y viento.
Il capitano legge la carta e scrive la rotta nel libro di bordo.
Корабль выходит из порта утром. Ветер слабый, и вода спокойна.
Зимой река замерзает, а весной лодки снова плывут к морю.
Старый капитан знает погоду по цвету вечернего неба.
Мы проверяем каждую часть корабля и записываем ответ в книгу.
Дети строят дом из снега и смеются. Вечером они пьют горячий чай.
Το πλοίο φεύγει από το λιμάνι το πρωί. Η θάλασσα είναι ήρεμη.
Ο παλιός φάρος δείχνει τον δρόμο στα καράβια όλη τη νύχτα.
Το χειμώνα το χωριό είναι ήσυχο και το βουνό άσπρο.
船在早上离开港口。风很小，水很平静。
老船长看着天空，知道明天会下雨。
我们每天检查机器，把结果写在书里。
孩子们在河边数鸟，晚上他们回家吃饭。
船は朝、港を出ます。風は弱く、海は静かです。
冬になると川は凍り、春になるとまた流れます。
私は毎日本を読みます。明日は雨が降るでしょう。
배는 아침에 항구를 떠납니다. 바람은 약하고 바다는 조용합니다.
겨울에는 강이 얼고 봄에는 다시 흐릅니다.
تغادر السفينة الميناء في الصباح. البحر هادئ والسماء صافية.
في الشتاء تنام الحديقة ويعد الأطفال الأيام حتى الربيع.
הספינה עוזבת את הנמל בבוקר. הים שקט והשמיים בהירים.
जहाज सुबह बंदरगाह से निकलता है। समुद्र शांत है।
सर्दियों में नदी जम जाती है और बच्चे हँसते हैं।
เรือออกจากท่าในตอนเช้า ทะเลสงบและลมอ่อน
function add(a, b) {
  return a + b
}
const names = ["Anna", "Ben", "Clara"]
for (const name of names) console.log(name.length)
def area(width, height):
    if width < 0 or height < 0:
        raise ValueError("negative side")
    return width * height
for i in range(10):
    print(i, i * i)
SELECT name, count(*) FROM ships WHERE speed > 12 GROUP BY name ORDER BY name;
{"id": 7, "name": "Nora", "tags": ["fast", "new"], "speed": 12.5, "active": true}
if (line.startsWith("#")) continue
import json
with open("data.json") as file:
    data = json.load(file)
while (left < right) {
  const middle = Math.floor((left + right) / 2)
  if (values[middle] < wanted) left = middle + 1
  else right = middle
}
<p class="note">The harbour is open.</p>
The café is naïve, the jalapeño is hot – and “quotes” are curly…
Smile 🙂, ship 🚢, star ⭐, heart ❤️, family 👩‍👩‍👧, flag 🇳🇴, thumbs up 👍.""".split("\n")

_VERBS = "sees finds carries keeps paints sells repairs watches remembers forgets describes measures opens closes counts follows loses hides".split()
_PLACES = ["in the harbour", "on the hill", "near the river", "behind the house", "at the market", "on the island", "under the bridge", "by the road", "in the garden", "on board"]
_TIMES = ["In the morning", "At noon", "In the evening", "On Monday", "On Sunday", "Every day", "Last year", "In the winter", "After the storm", "Before the trial", "Once a week", "At night"]
_ENDS = ["and nobody asks why", "because the weather is good", "but it is too late", "and then goes home", "although it rains", "so that the children can sleep", "if there is time", "while the others wait", "as the rule demands", "and writes it down"]


def sentence(r):
    """One sentence from templates."""
    noun, adjective, name = r.choice(NOUNS), r.choice(ADJECTIVES), r.choice(NAMES)
    other, place, time = r.choice(NOUNS), r.choice(_PLACES), r.choice(_TIMES)
    kind = r.randrange(12)
    if kind == 0:
        return f"The {adjective} {noun} is {place}."
    if kind == 1:
        return f"{name} {r.choice(_VERBS)} the {adjective} {noun} {place}."
    if kind == 2:
        return f"{time} {name} {r.choice(_VERBS)} the {noun}, {r.choice(_ENDS)}."
    if kind == 3:
        return f"The {noun} and the {other} are {adjective}."
    if kind == 4:
        return f"There is a {adjective} {noun} {place}, {r.choice(_ENDS)}."
    if kind == 5:
        return f"{name} lives in {r.choice(PLACES)} and {r.choice(_VERBS)} a {noun}."
    if kind == 6:
        return f"{time} the {noun} was {adjective}, {r.choice(_ENDS)}."
    if kind == 7:
        return f"The {noun} of {name} is {adjective} and {r.choice(ADJECTIVES)}."
    if kind == 8:
        return f"From {r.choice(PLACES)} to {r.choice(PLACES)} it takes {r.randrange(2, 30)} days."
    if kind == 9:
        return f"{name} has {r.randrange(2, 20)} {noun}s and {r.choice(NAMES)} has {r.randrange(2, 20)}."
    if kind == 10:
        return f"When the {noun} is {adjective}, {name} {r.choice(_VERBS)} the {other}."
    return f"Is the {noun} {adjective}? {name} says that it is {r.choice(ADJECTIVES)}."


def paragraph(r, sentences):
    """Some sentences, by hand and from templates."""
    return " ".join(r.choice(BY_HAND) if r.random() < 0.35 else sentence(r) for _ in range(sentences))


def _block(line):
    """The block of Unicode that most of a line is of; everything from kana on is one."""
    return min(ord(sorted(line)[len(line) * 3 // 4]) >> 7, 0x60)


def foreign(r):
    """A line in another script, or its words with those of others in a new order, so that not only whole lines are known."""
    line = r.choice(OTHER)
    near = [one for one in OTHER if _block(one) == _block(line)]
    if r.random() < 0.4 or _block(line) < 7:
        return line
    pieces = lambda text: text.split(" ") if " " in text else [text[at : at + 2] for at in range(0, len(text), 2)]  # noqa: E731
    words = [word for one in [line, r.choice(near), r.choice(near)] for word in pieces(one)]
    return (" " if " " in line else "").join(r.choice(words) for _ in range(r.randrange(3, 16)))


def _git(*words):
    return subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), *words], check=True, capture_output=True, text=True).stdout


@functools.cache
def documents():
    """The project's documents by paragraph, as they were at the pinned commit."""
    names = _git("ls-tree", "--full-tree", "--name-only", DOCUMENTS_AT, "docs/").split()
    return [[part for part in _git("show", f"{DOCUMENTS_AT}:{name}").split("\n\n") if part.strip()] for name in [*names, "README.md"] if name.endswith(".md")]


@functools.cache
def sources():
    """The project's own sources by file, as lines, as they were at the pinned commit."""
    names = [name for name in _git("ls-tree", "-r", "--full-tree", "--name-only", DOCUMENTS_AT, "packages/").split() if name.endswith(".ts") and "/src/" in name]
    return [lines for lines in (_git("show", f"{DOCUMENTS_AT}:{name}").split("\n") for name in names[::3]) if len(lines) > 20]


def excerpt(r, characters):
    """Some of the project's own documents, from the beginning of a sentence or a line."""
    parts = r.choice(documents())
    text = "\n\n".join(parts[r.randrange(len(parts)) :][:4])
    starts = [0, *(at + 2 for at in range(len(text) - 60) if text[at : at + 2] in (". ", ".\n", "|\n"))]
    at = r.choice(starts)
    return text[at : at + characters]


def program(r, characters):
    """Some of the project's own sources, from the beginning of a line."""
    lines = r.choice(sources())
    return "\n".join(lines[r.randrange(len(lines) - 10) :])[:characters]
