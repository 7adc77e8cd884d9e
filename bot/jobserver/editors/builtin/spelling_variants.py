"""Words of the typo list that are none: dictionaries have them beside, or apart from, what the list makes of them.

Found by giving the list all words of SCOWL up to size 80 and its variants, and reading what it would correct.
"""

ACCEPTED = frozenset((
    "algebraical", "astroid", "auxiliar", "browseable", "brusk", "caesarian", "cancelation", "cancelations",
    "clearstories", "clearstory", "colinear", "collapsable", "combatted", "combatting", "commandoes",
    "comminutes", "commutated", "commutating", "compactible", "constructer", "constructers", "conveyer",
    "conveyers", "cornel", "cornels", "debateable", "demographical", "didactical", "discernable", "discernably",
    "discontentment", "disfunction", "disfunctional", "driveable", "embargos", "enflamed", "equipments",
    "excluder", "excluders", "expresso", "extendible", "extraversion", "floatation", "focussed", "focusses",
    "focussing", "forbad", "formant", "formants", "funguses", "geometrician", "geometricians", "guestimate",
    "guestimates", "highjack", "highjacked", "highjacker", "highjackers", "highjacking", "highjacks",
    "humoural", "identic", "indiscernable", "intrusted", "invokable", "larvas", "leary", "lexigraphic",
    "milage", "milages", "momento", "monicker", "monickers", "nonsignificant", "objet", "objets", "octohedron",
    "operants", "perturbate", "perturbates", "pollenate", "precess", "precessed", "precesses", "precessing",
    "preprepared", "quitted", "rarified", "reenforce", "reenforced", "reenforcement", "reenforcing",
    "refocussed", "refocusses", "refocussing", "rememberable", "removeable", "responser", "restauranteur",
    "restauranteurs", "reuseable", "revaluated", "scaleable", "sematic", "sideral", "surprize", "surprized",
    "surprizes", "surprizing", "surviver", "survivers", "symmetral", "technic", "technics", "tieing",
    "tormenters", "torpedos", "transferrable", "transferrin", "unapplicable", "uncatalogued", "undiscernable",
    "uninvokable", "unmistakeable", "unmistakeably", "unparented", "unparseable", "vermillion", "vertexes",
    "writeable",
))  # fmt: skip
